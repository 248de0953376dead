// options.h: the command line.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

// A CaseSpec is a named set of dims, by name, as given.
struct CaseSpec {
  std::string name;
  std::map<std::string, int64_t> dims;
};

// A Run asks for one kernel on one case; both are indices into Options.
struct Run {
  size_t kernel;
  size_t case_index;
};

struct KernelSpec {
  std::string id;
  std::string path;
};

enum class Mode { device, check, time, profile };
enum class Regime { warm, cold };

struct Options {
  Mode mode = Mode::device;
  std::string op_path;
  std::vector<CaseSpec> cases;
  std::vector<KernelSpec> kernels;
  std::vector<Run> runs;
  uint64_t seed = 1;
  double tolerance = 0;  // the largest relative error that passes; 0: none given
  int batches = 8;
  double batch_us = 200;
  double warmup_ms = 20;
  int warmup_batches = 3;
  std::vector<Regime> regimes = {Regime::warm, Regime::cold};
  bool pad = false;  // random distances between allocations, from the seed
};

const char* mode_name(Mode mode);
const char* regime_name(Regime regime);

// parse reads the arguments after the program's name. It throws a Failure of
// kind usage for anything unknown, missing, repeated or out of range.
Options parse(const std::vector<std::string>& args);
