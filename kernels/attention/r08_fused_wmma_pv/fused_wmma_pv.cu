// r08: tensor cores for both products. The output waits in shared memory and passes
// through the fragments once a tile. README.md says what it teaches.

#include <cuda_fp16.h>
#include <mma.h>

#include "../attention.h"

namespace {

namespace wmma = nvcuda::wmma;

constexpr int kTile = 32;  // query rows a block, keys a tile
constexpr int kWarps = 8;  // 16×16 of the output each
constexpr int kThreads = 32 * kWarps;

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

}  // namespace

// Grid: (length / 32, heads).
extern "C" __global__ void attn_r08_fused_wmma_pv(const half* __restrict__ q, const half* __restrict__ k,
                                                  const half* __restrict__ v, half* __restrict__ o, int length,
                                                  float scale) {
  __shared__ __align__(32) half q_tile[kTile][kHeadDim], k_tile[kTile][kHeadDim], v_tile[kTile][kHeadDim];
  __shared__ __align__(32) half weights[kTile][kTile];
  __shared__ __align__(32) float scores[kTile][kTile], out[kTile][kHeadDim];
  __shared__ float row_max[kTile], row_sum[kTile];

  const size_t head = static_cast<size_t>(blockIdx.y) * length * kHeadDim;
  const size_t first_row = head + static_cast<size_t>(blockIdx.x) * kTile * kHeadDim;
  const int row = threadIdx.x, warp = threadIdx.x / 32;

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
    if (warp < 4) {  // the scores have four pieces, for eight warps
      const int r = warp / 2 * 16, c = warp % 2 * 16;
      multiply_qk(&scores[r][c], q_tile[r], k_tile[c]);
    }
    __syncthreads();

    if (row < kTile) {
      float max = row_max[row];
      for (int key = 0; key < kTile; ++key) max = fmaxf(max, scores[row][key] * scale);
      const float rescale = __expf(row_max[row] - max);
      float sum = row_sum[row] * rescale;
      for (int key = 0; key < kTile; ++key) {
        const float p = __expf(scores[row][key] * scale - max);
        weights[row][key] = __float2half_rn(p);
        sum += p;
      }
      row_max[row] = max;
      row_sum[row] = sum;
      for (int d = 0; d < kHeadDim; ++d) out[row][d] *= rescale;
    }
    __syncthreads();
    const int r = warp / 4 * 16, c = warp % 4 * 16;
    multiply_pv(&out[r][c], weights[r], &v_tile[0][c]);
  }

  __syncthreads();
  for (int i = threadIdx.x; i < kTile * kHeadDim; i += kThreads)
    o[first_row + i] = __float2half_rn(out[i / kHeadDim][i % kHeadDim] / row_sum[i / kHeadDim]);
}

extern "C" int gate_run(const gate_call* call, cudaStream_t stream) {
  AttentionCall c;
  if (!unpack(call, &c)) return GATE_UNSUPPORTED;
  const dim3 grid(c.length / kTile, c.heads);
  attn_r08_fused_wmma_pv<<<grid, kThreads, 0, stream>>>(c.q, c.k, c.v, c.o, c.length, kScale);
  return cudaGetLastError();
}
