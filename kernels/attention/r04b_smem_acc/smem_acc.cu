// r04b: a thread a query row, its output accumulated in shared memory key by
// key. 256 threads load, 32 of them compute. README.md says what it teaches.

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

// out = out · rescale + weight · value: a load and a store of shared memory for
// every multiply-add, eight of them in flight at a time.
__device__ void accumulate(float* out, const half* value, float rescale, float weight) {
  for (int d = 0; d < kHeadDim; d += 8) {
    float sum[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) sum[i] = out[d + i] * rescale + weight * __half2float(value[d + i]);
#pragma unroll
    for (int i = 0; i < 8; ++i) out[d + i] = sum[i];
  }
}

}  // namespace

// Grid: (length / 32, heads).
extern "C" __global__ void attn_r04b_smem_acc(const half* __restrict__ q, const half* __restrict__ k,
                                              const half* __restrict__ v, half* __restrict__ o, int length,
                                              float scale) {
  __shared__ __align__(16) half q_tile[kRows][kHeadDim], k_tile[kKeys][kHeadDim], v_tile[kKeys][kHeadDim];
  __shared__ float out[kRows][kHeadDim], row_max[kRows], row_sum[kRows];

  const size_t head = static_cast<size_t>(blockIdx.y) * length * kHeadDim;
  const size_t first_row = head + static_cast<size_t>(blockIdx.x) * kRows * kHeadDim;
  const int row = threadIdx.x;

  copy_tile<kRows>(q_tile, q + first_row);
  if (row < kRows) {
    row_max[row] = -INFINITY;
    row_sum[row] = 0.f;
    for (int d = 0; d < kHeadDim; ++d) out[row][d] = 0.f;
  }

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
        accumulate(out[row], v_tile[key], rescale, p);
      }
    }
  }

  __syncthreads();
  for (int i = threadIdx.x; i < kRows * kHeadDim; i += kThreads)
    o[first_row + i] = __float2half_rn(out[i / kHeadDim][i % kHeadDim] / row_sum[i / kHeadDim]);
}

extern "C" int gate_run(const gate_call* call, cudaStream_t stream) {
  AttentionCall c;
  if (!unpack(call, &c)) return GATE_UNSUPPORTED;
  const dim3 grid(c.length / kRows, c.heads);
  attn_r04b_smem_acc<<<grid, kThreads, 0, stream>>>(c.q, c.k, c.v, c.o, c.length, kScale);
  return cudaGetLastError();
}
