// units.h: the three kinds of work. Each announces its units with a begin
// record, sends one record per finished unit, and throws a Failure otherwise.
#pragma once

#include "contender.h"
#include "device.h"
#include "op.h"
#include "options.h"
#include "stream.h"

// A Job is one kernel on one case.
struct Job {
  const Options& options;
  const Device& device;
  Op& op;
  Contender& contender;
  const std::string& kernel;  // its id
  const Problem& problem;
  RecordStream& records;

  // A record that names the job's kernel and case.
  Json record() const { return Json().field("kernel", kernel).field("case", problem.name); }
};

// check compares the kernel with the reference on every input class.
void check(const Job& job);

// measure times the kernel in every regime that was asked for.
void measure(const Job& job);

// profile makes one call between cudaProfilerStart and cudaProfilerStop.
void profile(const Job& job);
