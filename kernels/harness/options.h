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

enum class Mode { device, prepare, check, time, profile };
enum class Regime : int { warm, cold };

// The largest errors that pass; 0 where none was given.
struct Tolerance {
  double relative_error = 0, max_abs_error = 0;
  double between_runs = 0;  // relative; of an op whose results vary
};

struct Options {
  Mode mode = Mode::device;
  std::string op_path;
  std::vector<CaseSpec> cases;
  std::vector<KernelSpec> kernels;
  std::vector<Run> runs;
  uint64_t seed = 0;      // drawn where it is not given
  Tolerance tolerance;
  std::vector<std::string> exact;    // outputs that are compared exactly
  std::vector<std::string> inout;    // inputs that are outputs as well
  std::vector<std::string> pdl;      // kernels that may launch programmatically
  std::vector<std::string> references;  // kernels that are compared with and not judged
  std::map<std::string, int> calls;  // of a batch, by KERNEL@CASE/REGIME
  std::map<std::string, int64_t> rows;  // that are compared, by case; all where none are given
  size_t alignment = 256, workspace_bytes = 0;
  bool varies = false;   // two runs may differ
  std::string data;      // folder with inputs and references
  std::string work_unit;  // the arithmetic of the op's stated work; "" where none is stated
  double settle_ms = 0;  // work that is thrown away, before the first unit
  int batches = 8;
  double batch_us = 200;
  double warmup_ms = 20;
  int warmup_batches = 3;
  std::vector<Regime> regimes = {Regime::warm, Regime::cold};
};

// arguments reads arguments from a descriptor to its end, each of which ends with a
// zero byte. It throws a Failure of kind usage for one that does not.
std::vector<std::string> arguments(int fd);

const char* mode_name(Mode mode);
const char* regime_name(Regime regime);

// parse reads the arguments that a mode begins. It throws a Failure of
// kind usage for anything unknown, missing, repeated or out of range.
Options parse(const std::vector<std::string>& args);
