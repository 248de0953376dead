// r05: tensor cores for Q·Kᵀ, and one thread for the softmax of every row. README.md
// says what it teaches.

#include <cuda_fp16.h>
#include <mma.h>

#include "../attention.h"

namespace {

namespace wmma = nvcuda::wmma;

constexpr int kRows = 32;  // query rows a block
constexpr int kKeys = 64;  // keys a tile
constexpr int kWarps = 4;
constexpr int kThreads = 32 * kWarps;
constexpr int kColumns = kHeadDim * kRows / kThreads;  // of a row of the output, a thread

template <int rows>
__device__ void copy_tile(half (*shared)[kHeadDim], const half* global) {
  for (int i = threadIdx.x; i < rows * kHeadDim / 8; i += kThreads)
    reinterpret_cast<uint4*>(shared)[i] = reinterpret_cast<const uint4*>(global)[i];
}

// A 16×16 piece of Q·Kᵀ.
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
  wmma::store_matrix_sync(scores, sum, kKeys, wmma::mem_row_major);
}

}  // namespace

// Grid: (length / 32, heads).
extern "C" __global__ void attn_r05_wmma_qk_serial(const half* __restrict__ q, const half* __restrict__ k,
                                                   const half* __restrict__ v, half* __restrict__ o, int length,
                                                   float scale) {
  __shared__ __align__(32) half q_tile[kRows][kHeadDim], kv_tile[kKeys][kHeadDim];  // K, then V
  __shared__ __align__(32) float scores[kRows][kKeys];
  __shared__ float row_max[kRows], row_sum[kRows], row_rescale[kRows];

  const size_t head = static_cast<size_t>(blockIdx.y) * length * kHeadDim;
  const size_t first_row = head + static_cast<size_t>(blockIdx.x) * kRows * kHeadDim;
  const int thread = threadIdx.x, warp = thread / 32;
  const int row = thread / (kThreads / kRows), column = thread % (kThreads / kRows) * kColumns;

  copy_tile<kRows>(q_tile, q + first_row);
  if (thread < kRows) {
    row_max[thread] = -INFINITY;
    row_sum[thread] = 0.f;
  }
  float out[kColumns] = {};

  for (int tile = 0; tile < length / kKeys; ++tile) {
    __syncthreads();  // nobody reads V any more
    copy_tile<kKeys>(kv_tile, k + head + tile * kKeys * kHeadDim);
    __syncthreads();
    for (int piece = warp; piece < kRows / 16 * (kKeys / 16); piece += kWarps) {
      const int r = piece / (kKeys / 16) * 16, c = piece % (kKeys / 16) * 16;
      multiply_qk(&scores[r][c], q_tile[r], kv_tile[c]);
    }
    __syncthreads();
    copy_tile<kKeys>(kv_tile, v + head + tile * kKeys * kHeadDim);

    // One row after the other, by one thread, and 127 wait.
    for (int r = 0; r < kRows; ++r) {
      if (thread == 0) {
        float max = row_max[r];
        for (int key = 0; key < kKeys; ++key) max = fmaxf(max, scores[r][key] * scale);
        const float rescale = __expf(row_max[r] - max);
        float sum = row_sum[r] * rescale;
        for (int key = 0; key < kKeys; ++key) sum += scores[r][key] = __expf(scores[r][key] * scale - max);
        row_max[r] = max;
        row_sum[r] = sum;
        row_rescale[r] = rescale;
      }
      __syncthreads();
    }

    for (int i = 0; i < kColumns; ++i) out[i] *= row_rescale[row];
    for (int key = 0; key < kKeys; ++key) {
      const float p = scores[row][key];
#pragma unroll
      for (int i = 0; i < kColumns; ++i) out[i] += p * __half2float(kv_tile[key][column + i]);
    }
  }
#pragma unroll
  for (int i = 0; i < kColumns; ++i)
    o[first_row + row * kHeadDim + column + i] = __float2half_rn(out[i] / row_sum[row]);
}

extern "C" int gate_run(const gate_call* call, cudaStream_t stream) {
  AttentionCall c;
  if (!unpack(call, &c)) return GATE_UNSUPPORTED;
  const dim3 grid(c.length / kRows, c.heads);
  attn_r05_wmma_qk_serial<<<grid, kThreads, 0, stream>>>(c.q, c.k, c.v, c.o, c.length, kScale);
  return cudaGetLastError();
}
