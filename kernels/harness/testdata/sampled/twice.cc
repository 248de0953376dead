// The op twice: twice[g, s, d] = 2 · x[g, s, d], and largest[g, s], where the row has
// its largest element: two outputs with rows of their own length. WHOLE is the same op
// without a reference of rows; DISAGREES is one that breaks the promise that finite
// inputs give finite results, and OUT_OF_RANGE names a notable row that there is not.

#include <cmath>
#include <cstdint>

#include "gate.h"

namespace {

int64_t all(const int64_t* dims) { return dims[0] * dims[1] * dims[2]; }
int64_t rows(const int64_t* dims) { return dims[0] * dims[1]; }

enum Class { kNormal, kNotFinite, kClasses };
const char* const kNames[kClasses] = {"normal", "not_finite"};

int fill(const int64_t* dims, int32_t input_class, uint64_t seed, void* const* inputs) {
  float* x = static_cast<float*>(inputs[0]);
  uint64_t state = seed;
  for (int64_t i = 0; i < all(dims); ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    x[i] = static_cast<float>(state >> 40) * 0x1p-24f + 0.5f;
  }
  if (input_class == kNotFinite) x[rows(dims) / 2 * dims[2]] = NAN;
  return 0;
}

void do_row(const int64_t* dims, const float* x, int64_t row, int64_t to, double* const* outputs) {
  const float* from = x + row * dims[2];
  int64_t largest = 0;
  for (int64_t d = 0; d < dims[2]; ++d) {
    outputs[0][to * dims[2] + d] = 2 * static_cast<double>(from[d]);
    if (from[d] > from[largest]) largest = d;
  }
  outputs[1][to] = static_cast<double>(largest);
}

int reference(const int64_t* dims, const void* const* inputs, double* const* outputs) {
  for (int64_t row = 0; row < rows(dims); ++row) do_row(dims, static_cast<const float*>(inputs[0]), row, row, outputs);
  return 0;
}

const char* const kDims[] = {"G", "S", "D"};
const gate_tensor kInputs[] = {{"x", GATE_F32, 4, all}};
const gate_tensor kOutputs[] = {{"twice", GATE_F32, 4, all}, {"largest", GATE_I32, 4, rows}};
const gate_op kOp = {1, "twice", 3, kDims, 1, kInputs, 2, kOutputs, kClasses, kNames, fill, reference, nullptr};

#ifndef WHOLE
int64_t in_block(const int64_t* dims) { return dims[1]; }

int reference_of_rows(const int64_t* dims, const void* const* inputs, int64_t count, const int64_t* list, double* const* outputs) {
  for (int64_t i = 0; i < count; ++i) do_row(dims, static_cast<const float*>(inputs[0]), list[i], i, outputs);
#ifdef DISAGREES
  outputs[0][0] = INFINITY;
#endif
  return 0;
}

#ifdef OUT_OF_RANGE
int64_t notable(const int64_t* dims, int32_t, int64_t) { return rows(dims); }
#else
int64_t notable(const int64_t* dims, int32_t input_class, int64_t number) { return input_class == kNotFinite && number == 0 ? rows(dims) / 2 : -1; }
#endif

const gate_rows kRows = {rows, in_block, reference_of_rows, notable};
#endif

}  // namespace

extern "C" const gate_op* gate_op_v1(void) { return &kOp; }
#ifndef WHOLE
extern "C" const gate_rows* gate_rows_v1(void) { return &kRows; }
#endif
