// The op floor: number[b] = b. x is there to be loaded; no result depends on it.

#include <cstdint>

#include "gate.h"

namespace {

constexpr int64_t kOfBlock = 1024;  // floats of x

int64_t blocks(const int64_t* dims) { return dims[0]; }
int64_t floats(const int64_t* dims) { return dims[0] * kOfBlock; }

enum Class { kPositive, kNegative, kClasses };
const char* const kNames[kClasses] = {"positive", "negative"};

int fill(const int64_t* dims, int32_t input_class, uint64_t seed, void* const* inputs) {
  float* x = static_cast<float*>(inputs[0]);
  for (int64_t i = 0; i < floats(dims); ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    const float size = static_cast<float>(seed >> 40) * 0x1p-24f + 1;
    x[i] = input_class == kNegative ? -size : size;
  }
  return 0;
}

int reference(const int64_t* dims, const void* const*, double* const* outputs) {
  for (int64_t b = 0; b < blocks(dims); ++b) outputs[0][b] = static_cast<double>(b);
  return 0;
}

const char* const kDims[] = {"BLOCKS"};
const gate_tensor kInputs[] = {{"x", GATE_F32, 4, floats}};
const gate_tensor kOutputs[] = {{"number", GATE_I32, 4, blocks}};
const gate_op kOp = {1, "floor", 1, kDims, 1, kInputs, 1, kOutputs, kClasses, kNames, fill, reference, nullptr};

}  // namespace

extern "C" const gate_op* gate_op_v1(void) { return &kOp; }
