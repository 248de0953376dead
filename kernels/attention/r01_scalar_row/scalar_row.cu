// r01: a block a query row, a thread a key, and everything else done by every
// thread again. K and V come straight from global memory. README.md says what it
// teaches.

#include <cuda_fp16.h>

#include "../attention.h"

namespace {

constexpr int kKeys = 64;  // keys a tile
constexpr int kThreads = 128;

}  // namespace

// Grid: (length, heads).
extern "C" __global__ void attn_r01_scalar_row(const half* __restrict__ q, const half* __restrict__ k,
                                               const half* __restrict__ v, half* __restrict__ o, int length,
                                               float scale) {
  __shared__ float query[kHeadDim], scores[kKeys];
  const size_t head = static_cast<size_t>(blockIdx.y) * length * kHeadDim;
  const size_t row = head + static_cast<size_t>(blockIdx.x) * kHeadDim;
  const int thread = threadIdx.x;

  if (thread < kHeadDim) query[thread] = __half2float(q[row + thread]);
  __syncthreads();

  float max = -INFINITY, sum = 0.f, out = 0.f;
  for (int tile = 0; tile < length; tile += kKeys) {
    // Half of the threads have a key. Neighbours read rows 128 bytes apart, two
    // bytes at a time.
    if (thread < kKeys) {
      const half* key = k + head + static_cast<size_t>(tile + thread) * kHeadDim;
      float score = 0.f;
      for (int d = 0; d < kHeadDim; ++d) score += query[d] * __half2float(key[d]);
      scores[thread] = score * scale;
    }
    __syncthreads();

    // Every thread looks for the maximum, and takes all 64 exponentials.
    float next = max;
    for (int key = 0; key < kKeys; ++key) next = fmaxf(next, scores[key]);
    const float rescale = __expf(max - next);
    float tile_sum = 0.f, tile_out = 0.f;
    for (int key = 0; key < kKeys; ++key) {
      const float p = __expf(scores[key] - next);
      tile_sum += p;
      tile_out += p * __half2float(v[head + static_cast<size_t>(tile + key) * kHeadDim + thread % kHeadDim]);
    }
    max = next;
    sum = sum * rescale + tile_sum;
    out = out * rescale + tile_out;
    __syncthreads();  // nobody reads the scores any more
  }
  if (thread < kHeadDim) o[row + thread] = __float2half_rn(out / sum);
}

extern "C" int gate_run(const gate_call* call, cudaStream_t stream) {
  AttentionCall c;
  if (!unpack(call, &c)) return GATE_UNSUPPORTED;
  const dim3 grid(c.length, c.heads);
  attn_r01_scalar_row<<<grid, kThreads, 0, stream>>>(c.q, c.k, c.v, c.o, c.length, kScale);
  return cudaGetLastError();
}
