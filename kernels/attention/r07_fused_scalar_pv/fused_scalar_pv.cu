// r07: one kernel again. Tensor cores for Q·Kᵀ; softmax and the product with V by a
// thread a row. README.md says what it teaches.

#include <cuda_fp16.h>
#include <mma.h>

#include "../attention.h"

namespace {

namespace wmma = nvcuda::wmma;

constexpr int kTile = 32;  // query rows a block, keys a tile
constexpr int kWarps = 4;  // 16×16 of the scores each
constexpr int kThreads = 32 * kWarps;

__device__ void copy_tile(half (*shared)[kHeadDim], const half* global) {
  for (int i = threadIdx.x; i < kTile * kHeadDim / 8; i += kThreads)
    reinterpret_cast<uint4*>(shared)[i] = reinterpret_cast<const uint4*>(global)[i];
}

__device__ void multiply_qk(float* scores, const half* q, const half* k) {
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
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

}  // namespace

// Grid: (length / 32, heads).
extern "C" __global__ void attn_r07_fused_scalar_pv(const half* __restrict__ q, const half* __restrict__ k,
                                                    const half* __restrict__ v, half* __restrict__ o, int length,
                                                    float scale) {
  __shared__ __align__(32) half q_tile[kTile][kHeadDim], k_tile[kTile][kHeadDim], v_tile[kTile][kHeadDim];
  __shared__ __align__(32) float scores[kTile][kTile];
  __shared__ float out[kTile][kHeadDim], row_max[kTile], row_sum[kTile];

  const size_t head = static_cast<size_t>(blockIdx.y) * length * kHeadDim;
  const size_t first_row = head + static_cast<size_t>(blockIdx.x) * kTile * kHeadDim;
  const int row = threadIdx.x, warp = threadIdx.x / 32, r = warp / 2 * 16, c = warp % 2 * 16;

  copy_tile(q_tile, q + first_row);
  if (row < kTile) {
    row_max[row] = -INFINITY;
    row_sum[row] = 0.f;
    for (int d = 0; d < kHeadDim; ++d) out[row][d] = 0.f;
  }

  for (int tile = 0; tile < length / kTile; ++tile) {
    __syncthreads();  // nobody reads the tile before any more
    copy_tile(k_tile, k + head + tile * kTile * kHeadDim);
    copy_tile(v_tile, v + head + tile * kTile * kHeadDim);
    __syncthreads();
    multiply_qk(&scores[r][c], q_tile[r], k_tile[c]);
    __syncthreads();  // the scores cross from four warps to one

    if (row < kTile) {
      float max = row_max[row];
      for (int key = 0; key < kTile; ++key) max = fmaxf(max, scores[row][key] * scale);
      const float rescale = __expf(row_max[row] - max);
      float sum = row_sum[row] * rescale;
      for (int key = 0; key < kTile; ++key) sum += scores[row][key] = __expf(scores[row][key] * scale - max);
      row_max[row] = max;
      row_sum[row] = sum;
      for (int d = 0; d < kHeadDim; ++d) {
        float value = out[row][d] * rescale;
        for (int key = 0; key < kTile; ++key) value += scores[row][key] * __half2float(v_tile[key][d]);
        out[row][d] = value;
      }
    }
  }

  __syncthreads();
  for (int i = threadIdx.x; i < kTile * kHeadDim; i += kThreads)
    o[first_row + i] = __float2half_rn(out[i / kHeadDim][i % kHeadDim] / row_sum[i / kHeadDim]);
}

extern "C" int gate_run(const gate_call* call, cudaStream_t stream) {
  AttentionCall c;
  if (!unpack(call, &c)) return GATE_UNSUPPORTED;
  const dim3 grid(c.length / kTile, c.heads);
  attn_r07_fused_scalar_pv<<<grid, kThreads, 0, stream>>>(c.q, c.k, c.v, c.o, c.length, kScale);
  return cudaGetLastError();
}
