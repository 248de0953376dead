// data.h: inputs and their exact results, from a pool of seeds.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "op.h"

// Golden data: the inputs of one class, and what the op makes of them.
struct Golden {
  Image inputs;
  std::vector<std::vector<double>> outputs;
  uint64_t seed = 0;
  // Of a case of which some rows are compared: those that outputs holds, and whether
  // no element of the inputs is NaN or an infinity.
  std::vector<int64_t> rows;
  bool finite = false;
};

// Data chooses inputs at random from a pool: 32 seeds of the ordinary class and 2 of
// each other, fewer of a case of which they would take more than 256 MiB. Where the options name a
// folder, inputs and results are read from it, a folder for each case, and
// computed where a file is missing or is not what was written. Only `prepare`
// writes there. Of a case of which some rows are compared nothing is kept: inputs and
// rows are drawn anew in each process, of seeds of which no two are alike.
class Data {
 public:
  Data(const Op& op, const Options& options);

  // golden is what this process uses of a class in a slot; slots below the pool's
  // size hold different seeds.
  const Golden& golden(const Problem& problem, int input_class, int slot);
  // forget gives back the memory of what golden computed of a case of which some rows
  // are compared.
  void forget(const Problem& problem);
  // prepare writes the pool of a case into the folder, and skips what is there.
  void prepare(const Problem& problem);

 private:
  int pool(const Problem& problem, int input_class) const;
  size_t fitting(const Problem& problem) const;
  uint64_t seed(const Problem& problem, int input_class, int index) const;
  std::string folder(const Problem& problem) const;
  std::string file(const Problem& problem, int input_class, int index, const char* what) const;
  bool read_salt(const Problem& problem);
  bool read(const Problem& problem, int input_class, int index, Golden& golden) const;
  void write(const Problem& problem, int input_class, int index) const;
  Golden compute(const Problem& problem, int input_class, int index) const;
  Golden sample(const Problem& problem, int input_class, int slot) const;

  const Op& op_;
  const std::string folder_;
  const uint64_t salt_;    // makes the seeds of a pool that is in no folder
  const uint64_t choice_;  // of this process
  std::map<std::string, uint64_t> salts_;  // by case
  std::map<std::tuple<std::string, int, int>, Golden> chosen_;
};
