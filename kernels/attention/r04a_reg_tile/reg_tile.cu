// r04a: a thread a query row, with a whole tile of accumulators in what looks like
// registers. README.md says where they are.

#include <cuda_fp16.h>

#include "../attention.h"

namespace {

constexpr int kRows = 32;  // query rows a block, and threads that compute
constexpr int kKeys = 64;  // keys a tile
constexpr int kThreads = 256;

template <int rows>
__device__ void copy_tile(half (*shared)[kHeadDim], const half* global) {
  for (int i = threadIdx.x; i < rows * kHeadDim / 8; i += kThreads)
    reinterpret_cast<uint4*>(shared)[i] = reinterpret_cast<const uint4*>(global)[i];
}

__device__ float dot(const half* a, const half* b) {
  float sum = 0.f;
  for (int d = 0; d < kHeadDim; d += 2) {
    const float2 x = __half22float2(*reinterpret_cast<const half2*>(a + d));
    const float2 y = __half22float2(*reinterpret_cast<const half2*>(b + d));
    sum += x.x * y.x + x.y * y.y;
  }
  return sum;
}

}  // namespace

// Grid: (length / 32, heads).
extern "C" __global__ void attn_r04a_reg_tile(const half* __restrict__ q, const half* __restrict__ k,
                                              const half* __restrict__ v, half* __restrict__ o, int length,
                                              float scale) {
  __shared__ __align__(16) half q_tile[kRows][kHeadDim], k_tile[kKeys][kHeadDim], v_tile[kKeys][kHeadDim];
  const size_t head = static_cast<size_t>(blockIdx.y) * length * kHeadDim;
  const size_t first_row = head + static_cast<size_t>(blockIdx.x) * kRows * kHeadDim;
  const int row = threadIdx.x;

  // Accumulators for all rows of the tile in every thread. The row is known at run
  // time only, and registers have no addresses: the arrays go to local memory.
  float out[kRows][kHeadDim], row_max[kRows], row_sum[kRows];
  for (int r = 0; r < kRows; ++r) {
    row_max[r] = -INFINITY;
    row_sum[r] = 0.f;
    for (int d = 0; d < kHeadDim; ++d) out[r][d] = 0.f;
  }
  copy_tile<kRows>(q_tile, q + first_row);

  for (int tile = 0; tile < length / kKeys; ++tile) {
    __syncthreads();  // nobody reads the tile before any more
    copy_tile<kKeys>(k_tile, k + head + tile * kKeys * kHeadDim);
    copy_tile<kKeys>(v_tile, v + head + tile * kKeys * kHeadDim);
    __syncthreads();

    if (row < kRows) {
      for (int key = 0; key < kKeys; ++key) {
        const float score = dot(q_tile[row], k_tile[key]) * scale;
        const float max = fmaxf(row_max[row], score);
        const float rescale = __expf(row_max[row] - max);
        const float p = __expf(score - max);
        row_max[row] = max;
        row_sum[row] = row_sum[row] * rescale + p;
        for (int d = 0; d < kHeadDim; ++d) out[row][d] = out[row][d] * rescale + p * __half2float(v_tile[key][d]);
      }
    }
  }

  if (row < kRows) {
    for (int d = 0; d < kHeadDim; ++d)
      o[first_row + row * kHeadDim + d] = __float2half_rn(out[row][d] / row_sum[row]);
  }
}

extern "C" int gate_run(const gate_call* call, cudaStream_t stream) {
  AttentionCall c;
  if (!unpack(call, &c)) return GATE_UNSUPPORTED;
  const dim3 grid(c.length / kRows, c.heads);
  attn_r04a_reg_tile<<<grid, kThreads, 0, stream>>>(c.q, c.k, c.v, c.o, c.length, kScale);
  return cudaGetLastError();
}
