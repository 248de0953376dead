// r09: r08 with the softmax by a warp a row. README.md says what it teaches.

#include <cuda_fp16.h>
#include <mma.h>

#include "../attention.h"

namespace {

namespace wmma = nvcuda::wmma;

constexpr int kTile = 32;  // query rows a block, keys a tile
constexpr int kWarps = 8;  // 16×16 of the output each
constexpr int kThreads = 32 * kWarps;
constexpr int kRowsAWarp = kTile / kWarps;

using Sum = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;

__device__ void copy_tile(half (*shared)[kHeadDim], const half* global) {
  for (int i = threadIdx.x; i < kTile * kHeadDim / 8; i += kThreads)
    reinterpret_cast<uint4*>(shared)[i] = reinterpret_cast<const uint4*>(global)[i];
}

__device__ void multiply_qk(float* scores, const half* q, const half* k) {
  Sum sum;
  wmma::fill_fragment(sum, 0.f);
  for (int d = 0; d < kHeadDim; d += 16) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> b;
    wmma::load_matrix_sync(a, q + d, kHeadDim);
    wmma::load_matrix_sync(b, k + d, kHeadDim);
    wmma::mma_sync(sum, a, b, sum);
  }
  wmma::store_matrix_sync(scores, sum, kTile, wmma::mem_row_major);
}

__device__ void multiply_pv(float* out, const half* p, const half* v) {
  Sum sum;
  wmma::load_matrix_sync(sum, out, kHeadDim, wmma::mem_row_major);
  for (int key = 0; key < kTile; key += 16) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> b;
    wmma::load_matrix_sync(a, p + key, kTile);
    wmma::load_matrix_sync(b, v + key * kHeadDim, kHeadDim);
    wmma::mma_sync(sum, a, b, sum);
  }
  wmma::store_matrix_sync(out, sum, kHeadDim, wmma::mem_row_major);
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
extern "C" __global__ void attn_r09_warp_softmax(const half* __restrict__ q, const half* __restrict__ k,
                                                  const half* __restrict__ v, half* __restrict__ o, int length,
                                                  float scale) {
  __shared__ __align__(32) half q_tile[kTile][kHeadDim], k_tile[kTile][kHeadDim], v_tile[kTile][kHeadDim];
  __shared__ __align__(32) half weights[kTile][kTile];
  __shared__ __align__(32) float scores[kTile][kTile], out[kTile][kHeadDim];

  const size_t head = static_cast<size_t>(blockIdx.y) * length * kHeadDim;
  const size_t first_row = head + static_cast<size_t>(blockIdx.x) * kTile * kHeadDim;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

  // A warp owns four rows; their maxima and sums stay in registers.
  float row_max[kRowsAWarp], row_sum[kRowsAWarp];
  copy_tile(q_tile, q + first_row);
#pragma unroll
  for (int i = 0; i < kRowsAWarp; ++i) {
    row_max[i] = -INFINITY;
    row_sum[i] = 0.f;
    out[warp * kRowsAWarp + i][lane] = out[warp * kRowsAWarp + i][lane + 32] = 0.f;
  }

  for (int tile = 0; tile < length / kTile; ++tile) {
    __syncthreads();  // nobody reads the tile before any more
    copy_tile(k_tile, k + head + tile * kTile * kHeadDim);
    copy_tile(v_tile, v + head + tile * kTile * kHeadDim);
    __syncthreads();
    if (warp < 4) {  // the scores have four pieces, for eight warps
      const int r = warp / 2 * 16, c = warp % 2 * 16;
      multiply_qk(&scores[r][c], q_tile[r], k_tile[c]);
    }
    __syncthreads();

#pragma unroll
    for (int i = 0; i < kRowsAWarp; ++i) {
      const int row = warp * kRowsAWarp + i;
      const float score = scores[row][lane] * scale;
      const float tile_max = warp_max(score), max = fmaxf(row_max[i], tile_max);
      const float rescale = __expf(row_max[i] - max);
      // The sum is taken at the tile's maximum and brought to the row's: an
      // exponential more than the weights alone would need.
      row_sum[i] = row_sum[i] * rescale + __expf(tile_max - max) * warp_sum(__expf(score - tile_max));
      weights[row][lane] = __float2half_rn(__expf(score - max));
      row_max[i] = max;
      out[row][lane] *= rescale;
      out[row][lane + 32] *= rescale;
    }
    __syncthreads();
    const int r = warp / 4 * 16, c = warp % 4 * 16;
    multiply_pv(&out[r][c], weights[r], &v_tile[0][c]);
  }

  __syncthreads();
#pragma unroll
  for (int i = 0; i < kRowsAWarp; ++i) {
    const int row = warp * kRowsAWarp + i;
    o[first_row + row * kHeadDim + lane] = __float2half_rn(out[row][lane] / row_sum[i]);
    o[first_row + row * kHeadDim + lane + 32] = __float2half_rn(out[row][lane + 32] / row_sum[i]);
  }
}

extern "C" int gate_run(const gate_call* call, cudaStream_t stream) {
  AttentionCall c;
  if (!unpack(call, &c)) return GATE_UNSUPPORTED;
  const dim3 grid(c.length / kTile, c.heads);
  attn_r09_warp_softmax<<<grid, kThreads, 0, stream>>>(c.q, c.k, c.v, c.o, c.length, kScale);
  return cudaGetLastError();
}
