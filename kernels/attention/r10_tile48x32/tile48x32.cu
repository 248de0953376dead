// r10: 48 query rows, 12 warps, K and V in two stages that arrive while the stage
// before is computed. README.md says what it teaches.

#include <cuda_fp16.h>
#include <mma.h>

#include "../attention.h"

namespace {

namespace wmma = nvcuda::wmma;

constexpr int kRows = 48;   // query rows a block
constexpr int kKeys = 32;   // keys a tile
constexpr int kWarps = 12;  // 16×16 of the output each
constexpr int kThreads = 32 * kWarps;
constexpr int kRowsAWarp = kRows / kWarps;
constexpr int kStages = 2;

struct Shared {
  half q[kRows][kHeadDim];
  half k[kStages][kKeys][kHeadDim], v[kStages][kKeys][kHeadDim];
  half weights[kRows][kKeys];
  float scores[kRows][kKeys];
  float out[kRows][kHeadDim];
};

using Sum = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;

// Starts the copy of rows of 128 bytes. Rows past the last one, which a tile of 48
// has and a head has not, read the last one again.
template <int rows>
__device__ void copy_tile(half (*shared)[kHeadDim], const half* global, int last) {
  for (int i = threadIdx.x; i < rows * kHeadDim / 8; i += kThreads) {
    const int row = i / (kHeadDim / 8), chunk = i % (kHeadDim / 8) * 8;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                     static_cast<uint32_t>(__cvta_generic_to_shared(&shared[row][chunk]))),
                 "l"(global + static_cast<size_t>(min(row, last)) * kHeadDim + chunk)
                 : "memory");
  }
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
  wmma::store_matrix_sync(scores, sum, kKeys, wmma::mem_row_major);
}

__device__ void multiply_pv(float* out, const half* p, const half* v) {
  Sum sum;
  wmma::load_matrix_sync(sum, out, kHeadDim, wmma::mem_row_major);
  for (int key = 0; key < kKeys; key += 16) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> b;
    wmma::load_matrix_sync(a, p + key, kKeys);
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

// Grid: (length / 48 and what is left, heads).
extern "C" __global__ void __launch_bounds__(kThreads, 2)
    attn_r10_tile48x32(const half* __restrict__ q, const half* __restrict__ k, const half* __restrict__ v,
                       half* __restrict__ o, int length, float scale) {
  extern __shared__ __align__(128) unsigned char memory[];
  Shared& shared = *reinterpret_cast<Shared*>(memory);

  const size_t head = static_cast<size_t>(blockIdx.y) * length * kHeadDim;
  const int first = blockIdx.x * kRows, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const auto copy_keys = [&](int tile) {
    const size_t from = head + static_cast<size_t>(tile) * kKeys * kHeadDim;
    copy_tile<kKeys>(shared.k[tile % kStages], k + from, kKeys - 1);
    copy_tile<kKeys>(shared.v[tile % kStages], v + from, kKeys - 1);
    asm volatile("cp.async.commit_group;" ::: "memory");
  };

  float row_max[kRowsAWarp], row_sum[kRowsAWarp];
#pragma unroll
  for (int i = 0; i < kRowsAWarp; ++i) {
    row_max[i] = -INFINITY;
    row_sum[i] = 0.f;
    shared.out[warp * kRowsAWarp + i][lane] = shared.out[warp * kRowsAWarp + i][lane + 32] = 0.f;
  }
  copy_tile<kRows>(shared.q, q + head + static_cast<size_t>(first) * kHeadDim, length - 1 - first);
  copy_keys(0);

  const int tiles = length / kKeys;
  for (int tile = 0; tile < tiles; ++tile) {
    const int stage = tile % kStages;
    if (tile + 1 < tiles) {
      copy_keys(tile + 1);
      asm volatile("cp.async.wait_group 1;" ::: "memory");
    } else {
      asm volatile("cp.async.wait_group 0;" ::: "memory");
    }
    __syncthreads();
    if (warp < kRows / 16 * (kKeys / 16)) {  // six pieces of scores for twelve warps
      const int r = warp / 2 * 16, c = warp % 2 * 16;
      multiply_qk(&shared.scores[r][c], shared.q[r], shared.k[stage][c]);
    }
    __syncthreads();

#pragma unroll
    for (int i = 0; i < kRowsAWarp; ++i) {
      const int row = warp * kRowsAWarp + i;
      const float score = shared.scores[row][lane] * scale;
      const float max = fmaxf(row_max[i], warp_max(score));
      const float rescale = __expf(row_max[i] - max), p = __expf(score - max);
      row_sum[i] = row_sum[i] * rescale + warp_sum(p);
      row_max[i] = max;
      shared.weights[row][lane] = __float2half_rn(p);
      shared.out[row][lane] *= rescale;
      shared.out[row][lane + 32] *= rescale;
    }
    __syncthreads();
    const int r = warp / 4 * 16, c = warp % 4 * 16;
    multiply_pv(&shared.out[r][c], shared.weights[r], &shared.v[stage][0][c]);
    __syncthreads();  // nobody reads this stage any more
  }

#pragma unroll
  for (int i = 0; i < kRowsAWarp; ++i) {
    const int row = warp * kRowsAWarp + i;
    if (first + row >= length) break;
    half* to = o + head + static_cast<size_t>(first + row) * kHeadDim;
    to[lane] = __float2half_rn(shared.out[row][lane] / row_sum[i]);
    to[lane + 32] = __float2half_rn(shared.out[row][lane + 32] / row_sum[i]);
  }
}

extern "C" int gate_prepare(const gate_call*) {
  return cudaFuncSetAttribute(attn_r10_tile48x32, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Shared));
}

extern "C" int gate_run(const gate_call* call, cudaStream_t stream) {
  AttentionCall c;
  if (!unpack(call, &c)) return GATE_UNSUPPORTED;
  const dim3 grid((c.length + kRows - 1) / kRows, c.heads);
  attn_r10_tile48x32<<<grid, kThreads, sizeof(Shared), stream>>>(c.q, c.k, c.v, c.o, c.length, kScale);
  return cudaGetLastError();
}
