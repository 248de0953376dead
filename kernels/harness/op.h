// op.h: the op under test: its description, its inputs and its reference.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gate.h"
#include "options.h"

using Bytes = std::vector<unsigned char>;

// A Problem is one case of the op: dims in the op's order and tensor sizes.
struct Problem {
  std::string name;
  std::vector<int64_t> dims;
  std::vector<size_t> input_bytes;
  std::vector<size_t> output_bytes;

  // All tensors of one call, in bytes.
  size_t call_bytes() const;
};

// Golden data: the inputs of one class and what the op makes of them.
struct Golden {
  std::vector<Bytes> inputs;
  std::vector<std::vector<double>> outputs;
};

// An Op wraps the description that a shared object exports. Whatever it refuses
// or returns is a Failure of kind op, load or symbol.
class Op {
 public:
  explicit Op(const std::string& path);

  Problem problem(const CaseSpec& spec) const;
  int classes() const { return op_->num_classes; }
  std::string class_name(int input_class) const { return op_->classes[input_class]; }

  std::vector<Bytes> inputs(const Problem& problem, int input_class, uint64_t seed) const;
  // golden computes inputs and reference once per problem and class.
  const Golden& golden(const Problem& problem, int input_class, uint64_t seed);
  // to_double converts one output as the device left it.
  std::vector<double> to_double(int output, const Bytes& elements) const;
  size_t element_bytes(int output) const { return static_cast<size_t>(op_->outputs[output].element_bytes); }

 private:
  void validate() const;
  std::vector<size_t> sizes(const Problem& problem, const gate_tensor* tensors, int count) const;

  const gate_op* op_;
  std::map<std::pair<std::string, int>, Golden> golden_;
};
