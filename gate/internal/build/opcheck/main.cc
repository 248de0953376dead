// Looks at an op without a GPU: loads it, compares its description with what
// op.yaml says, and makes inputs and a result of one case.
//
//   gate-op-check LIBRARY NAME DIM=SIZE…
//
// It prints "at WHAT" before each step, and ends with "ok" or "wrong WHY".

#include <dlfcn.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <set>
#include <string>
#include <vector>

#include "gate.h"

namespace {

constexpr int64_t kMostBytes = int64_t{4} << 30;  // of a case that is computed

// What a destructor of the op prints or does is not part of the answer.
[[noreturn]] void end(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
  _exit(0);
}

[[noreturn]] void wrong(const std::string& why) { end("wrong " + why); }

void at(const std::string& what) {
  std::printf("at %s\n", what.c_str());
  std::fflush(stdout);
}

std::string text(const char* s) { return s == nullptr ? "(none)" : s; }

void compare_names(const char* what, int count, const char* const* names, const std::vector<std::string>& want) {
  std::string has, wanted;
  for (int i = 0; i < count; ++i) has += (i > 0 ? ", " : "") + text(names[i]);
  for (size_t i = 0; i < want.size(); ++i) wanted += (i > 0 ? ", " : "") + want[i];
  if (has != wanted) wrong(std::string("has the ") + what + " " + has + ", and op.yaml has " + wanted);
}

void check_tensors(const char* what, int count, const gate_tensor* tensors, std::set<std::string>& seen) {
  if (count < 1 || count > 64 || tensors == nullptr) wrong(std::string("describes no ") + what + ", or more than 64");
  for (int i = 0; i < count; ++i) {
    const gate_tensor& t = tensors[i];
    const std::string where = std::string(what) + " number " + std::to_string(i);
    if (t.name == nullptr || *t.name == 0 || t.elements == nullptr) wrong("describes " + where + " without a name or its size");
    if (!seen.insert(t.name).second) wrong("describes two tensors called " + text(t.name));
    const bool wide = t.dtype == GATE_F64, single = t.dtype == GATE_F32, half = t.dtype == GATE_F16 || t.dtype == GATE_BF16;
    const int bytes = wide ? 8 : single ? 4 : half ? 2 : t.element_bytes;
    if (t.dtype < GATE_F64 || t.element_bytes < 1 || t.element_bytes > 64 || t.element_bytes != bytes)
      wrong("gives " + where + " (" + t.name + ") elements of " + std::to_string(t.element_bytes) + " bytes, which its type does not have");
  }
}

void check_classes(const gate_op* op) {
  if (op->num_classes < 1 || op->num_classes > 256 || op->classes == nullptr) wrong("describes no input class, or more than 256");
  std::set<std::string> seen;
  for (int i = 0; i < op->num_classes; ++i) {
    if (op->classes[i] == nullptr || op->classes[i][0] == 0) wrong("has an input class without a name");
    if (!seen.insert(op->classes[i]).second) wrong("has two input classes called " + text(op->classes[i]));
  }
}

using Buffers = std::vector<std::vector<unsigned char>>;

int64_t sizes(const int64_t* dims, int count, const gate_tensor* tensors, std::vector<int64_t>& elements) {
  int64_t sum = 0;
  for (int i = 0; i < count; ++i) {
    const int64_t n = tensors[i].elements(dims);
    if (n < 1) wrong("refuses the dims of its smallest case, for tensor " + text(tensors[i].name));
    elements.push_back(n);
    sum = n > kMostBytes ? kMostBytes + 1 : sum + n * 8;
    if (sum > kMostBytes) return sum;
  }
  return sum;
}

Buffers filled(const gate_op* op, const int64_t* dims, const std::vector<int64_t>& elements, int input_class) {
  Buffers buffers;
  std::vector<void*> pointers;
  for (size_t i = 0; i < elements.size(); ++i) buffers.emplace_back(elements[i] * op->inputs[i].element_bytes);
  for (auto& b : buffers) pointers.push_back(b.data());
  at("fill of class " + text(op->classes[input_class]));
  if (op->fill(dims, input_class, 1, pointers.data()) != 0) wrong("fails in fill of class " + text(op->classes[input_class]));
  return buffers;
}

void compute(const gate_op* op, const int64_t* dims) {
  std::vector<int64_t> in, out;
  at("the sizes of its tensors");
  if (sizes(dims, op->num_inputs, op->inputs, in) + sizes(dims, op->num_outputs, op->outputs, out) > kMostBytes) end("ok");
  const Buffers inputs = filled(op, dims, in, 0);
  if (filled(op, dims, in, 0) != inputs) wrong("fills class " + text(op->classes[0]) + " with other data each time");
  for (int i = 1; i < op->num_classes; ++i) filled(op, dims, in, i);
  std::vector<const void*> from;
  for (const auto& b : inputs) from.push_back(b.data());
  std::vector<std::vector<double>> results;
  std::vector<double*> to;
  for (int64_t n : out) results.emplace_back(n, NAN);
  for (auto& r : results) to.push_back(r.data());
  at("reference");
  if (op->reference(dims, from.data(), to.data()) != 0) wrong("fails in reference");
  for (size_t i = 0; i < results.size(); ++i)
    for (double value : results[i])
      if (!std::isfinite(value)) wrong("leaves elements of " + text(op->outputs[i].name) + " in reference, or makes them no finite number, on class " + text(op->classes[0]));
}

int look(int argc, char** argv) {
  at("loading");
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) wrong("cannot be loaded: " + text(dlerror()));
  const auto describe = reinterpret_cast<const gate_op* (*)()>(dlsym(library, "gate_op_v1"));
  if (describe == nullptr) wrong("has no function gate_op_v1; declare it extern \"C\", as gate.h does");
  at("gate_op_v1");
  const gate_op* op = describe();
  if (op == nullptr || op->version < 1) wrong("returns no description from gate_op_v1, or one without a version");
  if (op->name == nullptr || std::strcmp(op->name, argv[2]) != 0) wrong("is called " + text(op->name) + ", and op.yaml calls it " + argv[2]);
  std::vector<std::string> names;
  std::vector<int64_t> dims;
  for (int i = 3; i < argc; ++i) {
    const char* size = std::strrchr(argv[i], '=');
    if (size == nullptr) return 2;
    names.emplace_back(argv[i], size - argv[i]);
    dims.push_back(std::atoll(size + 1));
  }
  if (op->num_dims < 1 || op->num_dims > 16 || op->dims == nullptr) wrong("describes no dims, or more than 16");
  compare_names("dims", op->num_dims, op->dims, names);
  // A tensor that is worked on in place is an input and an output of one name.
  std::set<std::string> inputs, outputs;
  check_tensors("input", op->num_inputs, op->inputs, inputs);
  check_tensors("output", op->num_outputs, op->outputs, outputs);
  check_classes(op);
  if (op->fill == nullptr || op->reference == nullptr) wrong("lacks fill or reference");
  compute(op, dims.data());
  end("ok");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  try {
    return look(argc, argv);
  } catch (const std::bad_alloc&) {
    end("short of memory");
  } catch (...) {
    wrong("throws an exception");
  }
}
