// r02: the smallest complete flash attention. 32×32 tiles in shared memory, a
// warp a query row, a lane a key; every row of the output waits in shared memory
// for the next tile. README.md says what it teaches.

#include <cuda_fp16.h>

#include "../attention.h"

namespace {

constexpr int kTile = 32;  // query rows a block, keys a tile, lanes a warp
constexpr int kWarps = 4;
constexpr int kThreads = 32 * kWarps;

// Copies 32 rows of 64 elements, a row of half2 a warp at a time.
__device__ void copy_tile(half (*shared)[kHeadDim], const half* global) {
  for (int i = threadIdx.x; i < kTile * kHeadDim / 2; i += kThreads)
    reinterpret_cast<half2*>(shared)[i] = reinterpret_cast<const half2*>(global)[i];
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
extern "C" __global__ void attn_r02_minimal_fp16(const half* __restrict__ q, const half* __restrict__ k,
                                                 const half* __restrict__ v, half* __restrict__ o, int length,
                                                 float scale) {
  __shared__ half q_tile[kTile][kHeadDim], k_tile[kTile][kHeadDim], v_tile[kTile][kHeadDim];
  __shared__ float out[kTile][kHeadDim], row_max[kTile], row_sum[kTile];

  const size_t head = static_cast<size_t>(blockIdx.y) * length * kHeadDim;
  const size_t first_row = head + static_cast<size_t>(blockIdx.x) * kTile * kHeadDim;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

  copy_tile(q_tile, q + first_row);
  for (int row = warp; row < kTile; row += kWarps) {
    out[row][2 * lane] = out[row][2 * lane + 1] = 0.f;
    row_max[row] = -INFINITY;
    row_sum[row] = 0.f;
  }

  for (int tile = 0; tile < length / kTile; ++tile) {
    __syncthreads();  // nobody reads the tile before any more
    copy_tile(k_tile, k + head + tile * kTile * kHeadDim);
    copy_tile(v_tile, v + head + tile * kTile * kHeadDim);
    __syncthreads();

    for (int row = warp; row < kTile; row += kWarps) {
      // A lane reads its own row of K: all rows begin in the same bank.
      const float score = dot(q_tile[row], k_tile[lane]) * scale;
      const float old_max = row_max[row], old_sum = row_sum[row];
      const float max = fmaxf(old_max, warp_max(score));
      const float p = __expf(score - max);
      const float rescale = __expf(old_max - max);
      const float sum = old_sum * rescale + warp_sum(p);

      float x = out[row][2 * lane] * rescale, y = out[row][2 * lane + 1] * rescale;
      for (int key = 0; key < kTile; ++key) {
        const float weight = __shfl_sync(~0u, p, key);
        const float2 value = __half22float2(*reinterpret_cast<const half2*>(&v_tile[key][2 * lane]));
        x += weight * value.x;
        y += weight * value.y;
      }
      out[row][2 * lane] = x;
      out[row][2 * lane + 1] = y;
      __syncwarp();  // every lane has read the old maximum and sum
      row_max[row] = max;
      row_sum[row] = sum;
      __syncwarp();
    }
  }

  for (int row = warp; row < kTile; row += kWarps) {
    const float sum = row_sum[row];
    const half2 value = __floats2half2_rn(out[row][2 * lane] / sum, out[row][2 * lane + 1] / sum);
    reinterpret_cast<half2*>(o + first_row + row * kHeadDim)[lane] = value;
  }
}

extern "C" int gate_run(const gate_call* call, cudaStream_t stream) {
  AttentionCall c;
  if (!unpack(call, &c)) return GATE_UNSUPPORTED;
  const dim3 grid(c.length / kTile, c.heads);
  attn_r02_minimal_fp16<<<grid, kThreads, 0, stream>>>(c.q, c.k, c.v, c.o, c.length, kScale);
  return cudaGetLastError();
}
