// The op toy: out = 2 in. On the simulated GPU nobody but gate calls it.
#include "gate.h"

namespace {

const char* const dims[] = {"N"};
const char* const classes[] = {"normal", "wide"};

int64_t elements(const int64_t* sizes) { return sizes[0]; }

const gate_tensor in = {"in", GATE_F32, 4, elements}, out = {"out", GATE_F32, 4, elements};

int fill(const int64_t* sizes, int32_t input_class, uint64_t seed, void* const* inputs) {
  for (int64_t i = 0; i < sizes[0]; ++i)
    static_cast<float*>(inputs[0])[i] = static_cast<float>((i + seed) % 1024) * (input_class == 0 ? 1 : 4096);
  return 0;
}

int reference(const int64_t* sizes, const void* const* inputs, double* const* outputs) {
  for (int64_t i = 0; i < sizes[0]; ++i) outputs[0][i] = 2.0 * static_cast<const float*>(inputs[0])[i];
  return 0;
}

}  // namespace

extern "C" const gate_op* gate_op_v1(void) {
  static const gate_op op = {1, "toy", 1, dims, 1, &in, 1, &out, 2, classes, fill, reference, nullptr};
  return &op;
}
