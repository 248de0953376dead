// units.h: the three kinds of work. Each announces its units with a begin
// record, sends one record per finished unit, and throws a Failure otherwise.
#pragma once

#include "data.h"
#include "op.h"
#include "options.h"
#include "stage.h"
#include "stream.h"
#include "worker.h"

// A Job is one kernel on one case.
struct Job {
  const Options& options;
  const Op& op;
  Data& data;
  Worker& worker;
  const KernelSpec& kernel;
  const Problem& problem;
  RecordStream& records;

  // golden is what data gives, computed while this process says that it is at work.
  const Golden& golden(int input_class, int slot) const;
  // A record that names the job's kernel and case.
  Json record() const { return Json().field("kernel", kernel.id).field("case", problem.name); }
};

// What became of a stage in one regime.
struct Staged {
  Plan plan;
  int kernel_nodes = 0;
  std::vector<uint32_t> launches;  // of one call, six numbers each: grid and block
};

struct Stages {
  Staged regimes[2];

  const Staged& operator[](Regime regime) const { return regimes[regime == Regime::warm ? 0 : 1]; }
  // Where results are checked.
  Regime checked() const { return regimes[0].plan.calls > 0 ? Regime::warm : Regime::cold; }
};
// set_up lets the worker load the kernel and capture its graphs.
Stages set_up(const Job& job);

// load sends inputs; set i gets image i mod images.
void load(const Job& job, const std::vector<const Golden*>& images);
Findings findings(Message& answer);
// all_alone switches off the calls on one set. It throws a Failure if the outputs of the
// set were written all the same, or if other calls gave other results in two tries. The
// outputs must have been compared with the exact results of the images that were loaded
// last, and must have been right.
void all_alone(const Job& job, Regime regime, int set);

// other_classes are two classes besides the ordinary one, chosen at random for each
// kernel and process, on which the timed graphs are judged.
std::vector<int> other_classes(const Job& job);

// preload chooses the inputs of a job, and computes what is in no file. It runs while
// the device starts.
void preload(const Job& job);

// check compares the kernel with the reference on every input class.
void check(const Job& job);

// measure times the kernel in every regime that was asked for.
void measure(const Job& job);

// profile makes one call between cudaProfilerStart and cudaProfilerStop, and says which
// kernels a captured call launches, by grid and block.
void profile(const Job& job);
