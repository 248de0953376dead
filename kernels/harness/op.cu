#include "op.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <future>

#include "failure.h"
#include "library.h"

namespace {

constexpr int kMaxTensors = 64, kMaxDims = 16, kMaxClasses = 256;
constexpr int64_t kFewestOfBlock = 3;  // one of each edge, and one of the rest
constexpr size_t kMaxTensorBytes = size_t{1} << 36, kMaxNotable = 4096;

[[noreturn]] void refuse(const std::string& message) { throw Failure("op", message); }

// By the fields of a double, since this runs once for each element: a subnormal is
// the normal number with the same mantissa less that number's leading one.
double half_to_double(uint16_t bits) {
  const uint64_t sign = bits >> 15, exponent = (bits >> 10) & 31, mantissa = bits & 1023;
  const bool subnormal = exponent == 0;
  const uint64_t wide = exponent == 31 ? 2047 : exponent + subnormal + 1008;
  const uint64_t magnitude = wide << 52 | mantissa << 42, signed_zero = sign << 63;
  double value, zero;
  std::memcpy(&value, &magnitude, sizeof value);
  value -= subnormal ? 0x1p-14 : 0.0;
  std::memcpy(&zero, &signed_zero, sizeof zero);
  return std::copysign(value, zero);
}

double bfloat_to_double(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

template <class T>
double number(T value) {
  return static_cast<double>(value);
}

// One loop for each type, so that nothing is decided for each element.
template <class T, double to_double(T)>
std::vector<double> converted(const unsigned char* from, size_t bytes) {
  std::vector<double> values(bytes / sizeof(T));
  for (size_t i = 0; i < values.size(); ++i) {
    T raw;
    std::memcpy(&raw, from + i * sizeof raw, sizeof raw);
    values[i] = to_double(raw);
  }
  return values;
}

// Elements of a type that is not opaque.
std::vector<double> numbers(int dtype, const unsigned char* elements, size_t bytes) {
  switch (dtype) {
    case GATE_F64: return converted<double, number>(elements, bytes);
    case GATE_F32: return converted<float, number>(elements, bytes);
    case GATE_F16: return converted<uint16_t, half_to_double>(elements, bytes);
    case GATE_BF16: return converted<uint16_t, bfloat_to_double>(elements, bytes);
    case GATE_I8: return converted<int8_t, number>(elements, bytes);
    case GATE_U8: return converted<uint8_t, number>(elements, bytes);
    case GATE_I32: return converted<int32_t, number>(elements, bytes);
    default: return converted<int64_t, number>(elements, bytes);
  }
}

// By parts, since a whole tensor as doubles takes more memory than its inputs.
template <class Convert>
NonFinite count_nonfinite(const unsigned char* from, size_t bytes, size_t width, Convert convert) {
  constexpr size_t kElements = 8192;
  NonFinite found;
  for (size_t at = 0; at < bytes; at += kElements * width) {
    const std::vector<double> values = convert(from + at, std::min(bytes - at, kElements * width));
    for (size_t i = 0; i < values.size(); ++i)
      if (!std::isfinite(values[i]) && found.count++ == 0) found.first = at / width + i;
  }
  return found;
}

int dtype_bytes(int dtype) {
  switch (dtype) {
    case GATE_F64:
    case GATE_I64: return 8;
    case GATE_F32:
    case GATE_I32: return 4;
    case GATE_I8:
    case GATE_U8: return 1;
    case GATE_F16:
    case GATE_BF16: return 2;
  }
  return 0;
}

void validate_tensors(const gate_tensor* tensors, int count, const char* what, bool need_conversion) {
  if (count < 1 || count > kMaxTensors || tensors == nullptr) refuse(std::string("no or too many ") + what);
  for (int i = 0; i < count; ++i) {
    const gate_tensor& t = tensors[i];
    const std::string where = std::string(what) + " number " + std::to_string(i);
    if (t.elements == nullptr || t.name == nullptr) refuse(where + " lacks a name or its size");
    if (t.dtype < GATE_F64 || t.dtype > GATE_I64) refuse(where + " has an unknown type");
    if (t.element_bytes < 1 || t.element_bytes > 64) refuse(where + " has no element size");
    if (t.dtype != GATE_OPAQUE && t.element_bytes != dtype_bytes(t.dtype)) refuse(where + " has the wrong element size");
    if (t.dtype == GATE_OPAQUE && need_conversion) refuse(where + " is opaque and the op has no to_double");
  }
}

}  // namespace

Op::Op(const std::string& path) {
  void* library = open_library(path);
  op_ = required_symbol<const gate_op* (*)()>(library, path, "gate_op_v1")();
  if (const auto rows = optional_symbol<const gate_rows* (*)()>(library, "gate_rows_v1")) rows_ = rows();
  validate();
}

void Op::validate() const {
  if (op_ == nullptr || op_->version != 1) refuse("gate_op_v1 returned nothing, or another version");
  if (op_->num_dims < 1 || op_->num_dims > kMaxDims || op_->dims == nullptr) refuse("no or too many dims");
  if (op_->num_classes < 1 || op_->num_classes > kMaxClasses || op_->classes == nullptr) refuse("no or too many classes");
  if (op_->fill == nullptr || op_->reference == nullptr) refuse("fill or reference is missing");
  validate_tensors(op_->inputs, op_->num_inputs, "inputs", false);
  validate_tensors(op_->outputs, op_->num_outputs, "outputs", op_->to_double == nullptr);
}

std::vector<size_t> Op::sizes(const Problem& problem, const gate_tensor* tensors, int count) const {
  std::vector<size_t> bytes;
  for (int i = 0; i < count; ++i) {
    const int64_t elements = tensors[i].elements(problem.dims.data());
    const size_t width = static_cast<size_t>(tensors[i].element_bytes);
    if (elements < 1 || static_cast<size_t>(elements) > kMaxTensorBytes / width)
      refuse("the op refuses the dims of case " + problem.name + ", or a tensor is too large");
    bytes.push_back(static_cast<size_t>(elements) * width);
  }
  return bytes;
}

int Op::input_named(const std::string& name) const {
  for (int i = 0; i < op_->num_inputs; ++i)
    if (op_->inputs[i].name == name) return i;
  return -1;
}

Problem Op::problem(const CaseSpec& spec, const Options& options) const {
  Problem problem;
  problem.name = spec.name;
  for (int i = 0; i < op_->num_dims; ++i) {
    const auto dim = spec.dims.find(op_->dims[i]);
    if (dim == spec.dims.end()) throw Failure("usage", "case " + spec.name + " lacks dim " + op_->dims[i]);
    problem.dims.push_back(dim->second);
  }
  if (spec.dims.size() != problem.dims.size()) throw Failure("usage", "case " + spec.name + " has a dim that the op lacks");
  problem.input_bytes = sizes(problem, op_->inputs, op_->num_inputs);
  problem.output_bytes = sizes(problem, op_->outputs, op_->num_outputs);
  problem.held_in.assign(problem.output_bytes.size(), -1);
  for (const std::string& name : options.inout) {
    size_t output = 0;
    while (output < problem.held_in.size() && name != op_->outputs[output].name) ++output;
    const int input = input_named(name);
    if (input < 0 || output == problem.held_in.size() || problem.input_bytes[static_cast<size_t>(input)] != problem.output_bytes[output])
      throw Failure("usage", "--inout: " + name + " is not an input and an output of the op, of one size");
    problem.held_in[output] = input;
  }
  problem.alignment = options.alignment;
  problem.workspace_bytes = options.workspace_bytes;
  problem.repeatable = !options.varies;
  const auto rows = options.rows.find(spec.name);
  if (rows != options.rows.end()) count_rows(problem, rows->second);
  return problem;
}

void Op::count_rows(Problem& problem, int64_t wanted) const {
  if (rows_ == nullptr || rows_->count == nullptr || rows_->in_block == nullptr || rows_->reference == nullptr)
    refuse("--rows: the op has no reference of rows (gate_rows_v1)");
  problem.rows = wanted;
  problem.all_rows = rows_->count(problem.dims.data());
  problem.block_rows = rows_->in_block(problem.dims.data());
  if (problem.all_rows < 1 || problem.block_rows < 1 || problem.all_rows % problem.block_rows != 0)
    refuse("the rows of case " + problem.name + " do not fill whole blocks");
  const int64_t blocks = problem.all_rows / problem.block_rows;
  if (problem.sampled() && problem.rows < kFewestOfBlock * blocks)
    throw Failure("usage", "--rows: case " + problem.name + " has " + std::to_string(blocks) + " blocks, and " + std::to_string(kFewestOfBlock) + " rows of each are the least");
  for (size_t i = 0; i < problem.output_bytes.size(); ++i)
    if (problem.output_bytes[i] / element_bytes(static_cast<int>(i)) % static_cast<size_t>(problem.all_rows) != 0)
      refuse("output " + output_name(static_cast<int>(i)) + " of case " + problem.name + " does not consist of whole rows");
}

std::vector<int64_t> Op::notable(const Problem& problem, int input_class) const {
  std::vector<int64_t> rows;
  if (rows_ == nullptr || rows_->notable == nullptr) return rows;
  for (int64_t row; (row = rows_->notable(problem.dims.data(), input_class, static_cast<int64_t>(rows.size()))) >= 0;) {
    if (row >= problem.all_rows || rows.size() == kMaxNotable) refuse("a notable row of class " + class_name(input_class) + " is out of range, or there are too many");
    rows.push_back(row);
  }
  return rows;
}

Image Op::inputs(const Problem& problem, int input_class, uint64_t seed) const {
  Image image;
  std::vector<void*> pointers;
  for (size_t bytes : problem.input_bytes) image.emplace_back(bytes);
  for (Bytes& input : image) pointers.push_back(input.data());
  if (op_->fill(problem.dims.data(), input_class, seed, pointers.data()) != 0)
    refuse("fill failed for class " + class_name(input_class));
  return image;
}

// Asks a function of the op for outputs of which it computes `rows` of `all` rows.
template <class Compute>
std::vector<std::vector<double>> Op::computed(const Problem& problem, const Image& image, size_t rows, size_t all, Compute compute) const {
  std::vector<const void*> in;
  std::vector<std::vector<double>> outputs;
  std::vector<double*> out;
  for (const Bytes& input : image) in.push_back(input.data());
  for (size_t i = 0; i < problem.output_bytes.size(); ++i)
    outputs.emplace_back(problem.output_bytes[i] / element_bytes(static_cast<int>(i)) / all * rows, NAN);
  for (std::vector<double>& values : outputs) out.push_back(values.data());
  if (compute(in.data(), out.data()) != 0) refuse("reference failed");
  return outputs;
}

std::vector<std::vector<double>> Op::reference(const Problem& problem, const Image& image) const {
  return computed(problem, image, 1, 1, [&](const void* const* in, double* const* out) { return op_->reference(problem.dims.data(), in, out); });
}

std::vector<std::vector<double>> Op::reference(const Problem& problem, const Image& image, const std::vector<int64_t>& rows) const {
  const auto compute = [&](const void* const* in, double* const* out) {
    return rows_->reference(problem.dims.data(), in, static_cast<int64_t>(rows.size()), rows.data(), out);
  };
  return computed(problem, image, rows.size(), static_cast<size_t>(problem.all_rows), compute);
}

bool Op::finite(const Image& image) const {
  std::vector<std::future<bool>> tensors;
  for (size_t i = 0; i < image.size(); ++i) {
    const gate_tensor& input = op_->inputs[i];
    const auto convert = [&input](const unsigned char* at, size_t bytes) { return numbers(input.dtype, at, bytes); };
    tensors.push_back(std::async(std::launch::async, [&image, &input, i, convert] {
      return input.dtype != GATE_OPAQUE && count_nonfinite(image[i].data(), image[i].size(), static_cast<size_t>(input.element_bytes), convert).count == 0;
    }));
  }
  bool all = true;
  for (std::future<bool>& tensor : tensors) all &= tensor.get();
  return all;
}

NonFinite Op::nonfinite(int output, const unsigned char* elements, size_t bytes) const {
  return count_nonfinite(elements, bytes, element_bytes(output), [&](const unsigned char* at, size_t size) { return to_double(output, at, size); });
}

std::vector<double> Op::to_double(int output, const unsigned char* elements, size_t bytes) const {
  if (op_->outputs[output].dtype != GATE_OPAQUE) return numbers(op_->outputs[output].dtype, elements, bytes);
  std::vector<double> values(bytes / element_bytes(output), NAN);
  if (op_->to_double(output, elements, static_cast<int64_t>(values.size()), values.data()) != 0) refuse("to_double failed");
  return values;
}
