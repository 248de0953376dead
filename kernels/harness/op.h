// op.h: the op under test: its description, its inputs and its reference.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gate.h"
#include "options.h"
#include "problem.h"

// Elements that are NaN or infinities, and the first of them.
struct NonFinite {
  uint64_t count = 0, first = 0;
};

// An Op wraps the description that a shared object exports. Whatever it refuses
// or returns is a Failure of kind op, load or symbol.
class Op {
 public:
  explicit Op(const std::string& path);

  // problem is one case of the op, with what the options declare about tensors.
  Problem problem(const CaseSpec& spec, const Options& options) const;
  int classes() const { return op_->num_classes; }
  std::string class_name(int input_class) const { return op_->classes[input_class]; }

  // inputs fills one image.
  Image inputs(const Problem& problem, int input_class, uint64_t seed) const;
  // reference computes the exact outputs of an image: whole, or those rows of them
  // one after the other.
  std::vector<std::vector<double>> reference(const Problem& problem, const Image& image) const;
  std::vector<std::vector<double>> reference(const Problem& problem, const Image& image, const std::vector<int64_t>& rows) const;
  // notable are the rows that a class is about; none where the op names none.
  std::vector<int64_t> notable(const Problem& problem, int input_class) const;
  // finite is true where no element of an image is NaN or an infinity, and no tensor
  // opaque.
  bool finite(const Image& image) const;
  // to_double converts one output as the device left it.
  std::vector<double> to_double(int output, const unsigned char* elements, size_t bytes) const;
  NonFinite nonfinite(int output, const unsigned char* elements, size_t bytes) const;
  size_t element_bytes(int output) const { return static_cast<size_t>(op_->outputs[output].element_bytes); }
  std::string output_name(int output) const { return op_->outputs[output].name; }

 private:
  void validate() const;
  void count_rows(Problem& problem, int64_t wanted) const;
  template <class Compute>
  std::vector<std::vector<double>> computed(const Problem& problem, const Image& image, size_t rows, size_t all, Compute compute) const;
  std::vector<size_t> sizes(const Problem& problem, const gate_tensor* tensors, int count) const;

  int input_named(const std::string& name) const;

  const gate_op* op_;
  const gate_rows* rows_ = nullptr;
};
