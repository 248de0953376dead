// r06: three kernels, tensor cores for both products, and all scores through global
// memory between them. README.md says what it teaches.

#include <cuda_fp16.h>
#include <mma.h>

#include "../attention.h"

namespace {

namespace wmma = nvcuda::wmma;

constexpr int kTile = 64;  // rows and keys a tile
constexpr int kWarps = 16;
constexpr int kThreads = 32 * kWarps;
constexpr int kMaxHeads = 16, kMaxLength = 512;

// Scores, then probabilities. A call may allocate nothing, so the largest case
// decides the size.
__device__ float all_scores[kMaxHeads * kMaxLength * kMaxLength];

__device__ void copy_tile(half (*shared)[kTile], const half* global) {
  for (int i = threadIdx.x; i < kTile * kTile / 8; i += kThreads)
    reinterpret_cast<uint4*>(shared)[i] = reinterpret_cast<const uint4*>(global)[i];
}

// One 16×16 piece a warp of a 64×64 product, sum += a · b.
using Sum = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;
template <class Layout>
__device__ void multiply(Sum& sum, const half* a, const half* b, int b_step) {
  for (int i = 0; i < kTile; i += 16) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> x;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, Layout> y;
    wmma::load_matrix_sync(x, a + i, kTile);
    wmma::load_matrix_sync(y, b + i * b_step, kTile);
    wmma::mma_sync(sum, x, y, sum);
  }
}

}  // namespace

// Grid: (length / 64, heads).
extern "C" __global__ void attn_r06_scores(const half* __restrict__ q, const half* __restrict__ k, int length,
                                           float scale) {
  __shared__ __align__(32) half q_tile[kTile][kTile], k_tile[kTile][kTile];
  __shared__ __align__(32) float product[kTile][kTile];
  const size_t head = static_cast<size_t>(blockIdx.y) * length * kHeadDim;
  const int warp = threadIdx.x / 32, r = warp / 4 * 16, c = warp % 4 * 16;
  copy_tile(q_tile, q + head + static_cast<size_t>(blockIdx.x) * kTile * kHeadDim);
  for (int key = 0; key < length; key += kTile) {
    __syncthreads();
    copy_tile(k_tile, k + head + static_cast<size_t>(key) * kHeadDim);
    __syncthreads();
    Sum sum;
    wmma::fill_fragment(sum, 0.f);
    multiply<wmma::col_major>(sum, q_tile[r], k_tile[c], 1);
    wmma::store_matrix_sync(&product[r][c], sum, kTile, wmma::mem_row_major);
    __syncthreads();
    // A thread a row: neighbouring threads write 2 KB apart.
    if (threadIdx.x < kTile) {
      const size_t row = static_cast<size_t>(blockIdx.y) * length + blockIdx.x * kTile + threadIdx.x;
      for (int i = 0; i < kTile; ++i) all_scores[row * length + key + i] = product[threadIdx.x][i] * scale;
    }
  }
}

// Grid: heads · length rows, one warp each.
extern "C" __global__ void attn_r06_softmax(int length) {
  float* row = all_scores + static_cast<size_t>(blockIdx.x) * length;
  float max = -INFINITY, sum = 0.f;
  for (int i = threadIdx.x; i < length; i += 32) max = fmaxf(max, row[i]);
  for (int step = 16; step > 0; step /= 2) max = fmaxf(max, __shfl_xor_sync(~0u, max, step));
  for (int i = threadIdx.x; i < length; i += 32) sum += __expf(row[i] - max);
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  for (int i = threadIdx.x; i < length; i += 32) row[i] = __expf(row[i] - max) / sum;
}

// Grid: (length / 64, heads).
extern "C" __global__ void attn_r06_output(const half* __restrict__ v, half* __restrict__ o, int length) {
  __shared__ __align__(32) half p_tile[kTile][kTile], v_tile[kTile][kTile];
  __shared__ __align__(32) float product[kTile][kTile];
  const size_t head = static_cast<size_t>(blockIdx.y) * length * kHeadDim;
  const int warp = threadIdx.x / 32, r = warp / 4 * 16, c = warp % 4 * 16;
  Sum sum;
  wmma::fill_fragment(sum, 0.f);
  for (int key = 0; key < length; key += kTile) {
    __syncthreads();
    copy_tile(v_tile, v + head + static_cast<size_t>(key) * kHeadDim);
    for (int i = threadIdx.x; i < kTile * kTile; i += kThreads) {
      const size_t row = static_cast<size_t>(blockIdx.y) * length + blockIdx.x * kTile + i / kTile;
      p_tile[i / kTile][i % kTile] = __float2half_rn(all_scores[row * length + key + i % kTile]);
    }
    __syncthreads();
    multiply<wmma::row_major>(sum, p_tile[r], &v_tile[0][c], kTile);
  }
  wmma::store_matrix_sync(&product[r][c], sum, kTile, wmma::mem_row_major);
  __syncthreads();
  const size_t first = head + static_cast<size_t>(blockIdx.x) * kTile * kHeadDim;
  for (int i = threadIdx.x; i < kTile * kTile; i += kThreads) o[first + i] = __float2half_rn(product[i / kTile][i % kTile]);
}

extern "C" int gate_run(const gate_call* call, cudaStream_t stream) {
  AttentionCall c;
  if (!unpack(call, &c) || c.heads > kMaxHeads || c.length > kMaxLength) return GATE_UNSUPPORTED;
  const dim3 grid(c.length / kTile, c.heads);
  attn_r06_scores<<<grid, kThreads, 0, stream>>>(c.q, c.k, c.length, kScale);
  attn_r06_softmax<<<c.heads * c.length, 32, 0, stream>>>(c.length);
  attn_r06_output<<<grid, kThreads, 0, stream>>>(c.v, c.o, c.length);
  return cudaGetLastError();
}
