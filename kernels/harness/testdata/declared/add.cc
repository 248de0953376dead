// An op that works in place and whose results vary: x += y, and total = Σ x. It is
// declared by `inout: [x]`, `repeatable: false`, `tolerance: {relative_error: 1e-4,
// between_runs: 1e-5}` and `workspace: 4096`.

#include <cstdint>

#include "gate.h"

namespace {

int64_t all(const int64_t* dims) { return dims[0]; }
int64_t one(const int64_t*) { return 1; }

int fill(const int64_t* dims, int32_t, uint64_t seed, void* const* inputs) {
  for (int tensor = 0; tensor < 2; ++tensor)
    for (int64_t i = 0; i < dims[0]; ++i)
      static_cast<float*>(inputs[tensor])[i] = static_cast<float>((seed % 97 + static_cast<uint64_t>(i * (3 + tensor))) % 101) / 101.0f;
  return 0;
}

int reference(const int64_t* dims, const void* const* inputs, double* const* outputs) {
  outputs[1][0] = 0;
  for (int64_t i = 0; i < dims[0]; ++i) {
    outputs[0][i] = static_cast<double>(static_cast<const float*>(inputs[0])[i]) + static_cast<double>(static_cast<const float*>(inputs[1])[i]);
    outputs[1][0] += outputs[0][i];
  }
  return 0;
}

const char* const kDims[] = {"N"};
const char* const kClasses[] = {"normal"};
const gate_tensor kInputs[] = {{"x", GATE_F32, 4, all}, {"y", GATE_F32, 4, all}};
const gate_tensor kOutputs[] = {{"x", GATE_F32, 4, all}, {"total", GATE_F32, 4, one}};
const gate_op kOp = {1, "add", 1, kDims, 2, kInputs, 2, kOutputs, 1, kClasses, fill, reference, nullptr};

}  // namespace

extern "C" const gate_op* gate_op_v1(void) { return &kOp; }
