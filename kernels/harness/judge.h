// judge.h: how far outputs are from the exact result.
#pragma once

#include <string>
#include <vector>

#include "data.h"
#include "op.h"

// A Distance sums up one image of outputs. Each output has an error of its own;
// the worst counts.
struct Distance {
  uint64_t elements = 0;
  uint64_t compared = 0;    // elements of the rows that are compared
  uint64_t nonfinite = 0;   // NaN, +∞ or −∞ on one side and not on the other; anywhere in outputs of finite inputs
  uint64_t mismatched = 0;  // elements of exact outputs that differ
  double relative_error = 0, max_abs_error = 0;
  uint64_t max_abs_index = 0;  // over all outputs, one after the other

  // reasons says what is wrong; nothing when the outputs are right.
  std::vector<std::string> reasons(const Tolerance& tolerance) const;
};

Distance distance(const Op& op, const Options& options, const Problem& problem, const Golden& golden, const unsigned char* outputs);
// relative_change is the distance between two runs: the largest over the outputs.
double relative_change(const Op& op, const Problem& problem, const unsigned char* a, const unsigned char* b);
