// r03: scores by one warp, everything after them by all four. Three barriers a
// tile, each with a reason. README.md says what it teaches.

#include <cuda_fp16.h>

#include "../attention.h"

namespace {

constexpr int kRows = 32;  // query rows a block
constexpr int kKeys = 64;  // keys a tile
constexpr int kWarps = 4;
constexpr int kThreads = 32 * kWarps;

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

__device__ float warp_max(float x) {
  for (int step = 16; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, step));
  return x;
}
__device__ float warp_sum(float x) {
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(~0u, x, step);
  return x;
}

}  // namespace

// Grid: (length / 32, heads).
extern "C" __global__ void attn_r03_light_barrier(const half* __restrict__ q, const half* __restrict__ k,
                                                  const half* __restrict__ v, half* __restrict__ o, int length,
                                                  float scale) {
  __shared__ __align__(16) half q_tile[kRows][kHeadDim], k_tile[kKeys][kHeadDim], v_tile[kKeys][kHeadDim];
  __shared__ float scores[kRows][kKeys], out[kRows][kHeadDim];

  const size_t head = static_cast<size_t>(blockIdx.y) * length * kHeadDim;
  const size_t first_row = head + static_cast<size_t>(blockIdx.x) * kRows * kHeadDim;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

  // A warp owns rows warp, warp + 4, …; their maxima and sums stay in registers.
  constexpr int rows_a_warp = kRows / kWarps;
  float row_max[rows_a_warp], row_sum[rows_a_warp];
  copy_tile<kRows>(q_tile, q + first_row);
#pragma unroll
  for (int i = 0; i < rows_a_warp; ++i) {
    row_max[i] = -INFINITY;
    row_sum[i] = 0.f;
    out[i * kWarps + warp][lane] = out[i * kWarps + warp][lane + 32] = 0.f;
  }

  for (int tile = 0; tile < length / kKeys; ++tile) {
    __syncthreads();  // nobody reads the tile before any more
    copy_tile<kKeys>(k_tile, k + head + tile * kKeys * kHeadDim);
    copy_tile<kKeys>(v_tile, v + head + tile * kKeys * kHeadDim);
    __syncthreads();

    // A thread a row: the other three warps wait, and the 32 rows of Q that the
    // first one reads side by side all begin in the same bank.
    if (warp == 0) {
      for (int key = 0; key < kKeys; ++key) scores[lane][key] = dot(q_tile[lane], k_tile[key]) * scale;
    }
    __syncthreads();  // the scores cross from one warp to four

#pragma unroll
    for (int i = 0; i < rows_a_warp; ++i) {
      const int row = i * kWarps + warp;
      const float a = scores[row][lane], b = scores[row][lane + 32];
      const float max = fmaxf(row_max[i], warp_max(fmaxf(a, b)));
      const float pa = __expf(a - max), pb = __expf(b - max);
      const float rescale = __expf(row_max[i] - max);
      row_max[i] = max;
      row_sum[i] = row_sum[i] * rescale + warp_sum(pa + pb);

      float x = out[row][lane] * rescale, y = out[row][lane + 32] * rescale;
      for (int key = 0; key < kKeys; ++key) {
        const float weight = __shfl_sync(~0u, key < 32 ? pa : pb, key % 32);
        x += weight * __half2float(v_tile[key][lane]);
        y += weight * __half2float(v_tile[key][lane + 32]);
      }
      out[row][lane] = x;
      out[row][lane + 32] = y;
    }
  }

#pragma unroll
  for (int i = 0; i < rows_a_warp; ++i) {
    const int row = i * kWarps + warp;
    o[first_row + row * kHeadDim + lane] = __float2half_rn(out[row][lane] / row_sum[i]);
    o[first_row + row * kHeadDim + lane + 32] = __float2half_rn(out[row][lane + 32] / row_sum[i]);
  }
}

extern "C" int gate_run(const gate_call* call, cudaStream_t stream) {
  AttentionCall c;
  if (!unpack(call, &c)) return GATE_UNSUPPORTED;
  const dim3 grid(c.length / kRows, c.heads);
  attn_r03_light_barrier<<<grid, kThreads, 0, stream>>>(c.q, c.k, c.v, c.o, c.length, kScale);
  return cudaGetLastError();
}
