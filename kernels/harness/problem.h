// problem.h: one case of an op, as far as the worker knows of it: sizes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "wire.h"

using Bytes = std::vector<unsigned char>;
using Image = std::vector<Bytes>;  // the inputs of one call

// A Problem is one case of the op: dims in the op's order and tensor sizes.
struct Problem {
  std::string name;
  std::vector<int64_t> dims;
  std::vector<size_t> input_bytes;
  std::vector<size_t> output_bytes;
  std::vector<int> held_in;  // of each output, the number of the input whose memory it shares; -1 for none
  size_t alignment = 256;    // tensors lie at multiples of it, and of nothing larger
  size_t workspace_bytes = 0;
  bool repeatable = true;  // two runs give the same bits
  // Of a case that is given --rows. These stay with the runner: nobody else may know
  // that some rows are compared and others are not.
  int64_t rows = 0, all_rows = 0, block_rows = 0;

  bool in_place() const;
  // sampled is true where some rows are compared in the place of all.
  bool sampled() const { return rows > 0 && rows < all_rows; }
  size_t all_inputs() const { return sum(input_bytes); }
  size_t all_outputs() const { return sum(output_bytes); }
  // All tensors of one call, in bytes.
  size_t call_bytes() const;

  void put(Message& message) const;
  static Problem get(Message& message);

 private:
  static size_t sum(const std::vector<size_t>& sizes);
};
