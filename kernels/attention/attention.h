// attention.h: a gate_call of the op attention, unpacked. Shared by the kernels
// of this folder; it decides nothing about how they work.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "gate.h"

// An AttentionCall holds q, k, v and o as [heads, length, 64] arrays, contiguous;
// heads counts the pairs of batch and head, which are independent of each other.
struct AttentionCall {
  const half* q;
  const half* k;
  const half* v;
  half* o;
  int heads;
  int length;
};

constexpr int kHeadDim = 64;
constexpr float kScale = 0.125f;           // 1/√64
constexpr float kLog2e = 1.4426950408889634f;

// unpack fills out, or returns false for a shape that no kernel here takes: the
// head dimension is 64, the length a multiple of 64, and the heads fit grid.y.
inline bool unpack(const gate_call* call, AttentionCall* out) {
  if (call->num_dims != 4 || call->num_inputs != 3 || call->num_outputs != 1) return false;
  const int64_t batch = call->dims[0], heads = call->dims[1];
  const int64_t length = call->dims[2], dim = call->dims[3];
  constexpr int64_t max_grid_y = 65535, max_length = 1 << 20;
  if (dim != kHeadDim || length < 64 || length > max_length || length % 64 != 0) return false;
  if (batch < 1 || heads < 1 || batch > max_grid_y || heads > max_grid_y / batch) return false;
  out->q = static_cast<const half*>(call->inputs[0]);
  out->k = static_cast<const half*>(call->inputs[1]);
  out->v = static_cast<const half*>(call->inputs[2]);
  out->o = static_cast<half*>(call->outputs[0]);
  out->heads = static_cast<int>(batch * heads);
  out->length = static_cast<int>(length);
  return true;
}
