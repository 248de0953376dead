// r11: flash attention in registers. A block owns 64 query rows and walks over
// the keys in tiles of 64; scores, probabilities and the output never leave the
// registers of the warp that computes them. README.md says what it teaches.

#include <cuda_fp16.h>

#include "../attention.h"

namespace {

constexpr int kTile = 64;                    // query rows a block, keys a tile
constexpr int kWarps = 4;                    // 16 query rows each
constexpr int kThreads = 32 * kWarps;
constexpr int kRowBytes = kHeadDim * 2;      // 128: all 32 banks, 8 chunks of 16 bytes
constexpr int kTileBytes = kTile * kRowBytes;
constexpr int kStages = 2;

// Where a 16-byte chunk of a tile lies. The XOR spreads one column of chunks
// over all banks, so that neither ldmatrix nor the copies meet a conflict.
__device__ __forceinline__ uint32_t swizzle(int row, int chunk) {
  return row * kRowBytes + ((chunk ^ (row & 7)) << 4);
}

__device__ __forceinline__ void copy_async(uint32_t shared, const void* global) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared), "l"(global) : "memory");
}
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int still_flying>
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(still_flying) : "memory");
}

__device__ __forceinline__ void store_word(uint32_t shared, uint32_t word) {
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(shared), "r"(word) : "memory");
}
// 16 bytes from shared to global memory, in one load and one store.
__device__ __forceinline__ void copy_chunk(void* global, uint32_t shared) {
  uint32_t x, y, z, w;
  asm volatile("ld.shared.v4.b32 {%0,%1,%2,%3}, [%4];" : "=r"(x), "=r"(y), "=r"(z), "=r"(w) : "r"(shared) : "memory");
  asm volatile("st.global.v4.b32 [%0], {%1,%2,%3,%4};" ::"l"(global), "r"(x), "r"(y), "r"(z), "r"(w) : "memory");
}

// Four 8×8 matrices from shared memory, one row address a lane.
__device__ __forceinline__ void load_matrices(uint32_t (&r)[4], uint32_t shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared)
               : "memory");
}
__device__ __forceinline__ void load_matrices_transposed(uint32_t (&r)[4], uint32_t shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared)
               : "memory");
}

// d += a · b for a 16×16 times a 16×8 tile, FP16 in, FP32 out.
__device__ __forceinline__ void mma(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ __forceinline__ uint32_t pack(float lo, float hi) {
  const half2 h = __floats2half2_rn(lo, hi);
  return reinterpret_cast<const uint32_t&>(h);
}

// One row of an accumulator lies in the four lanes of a quad.
__device__ __forceinline__ float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
  return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}
__device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}

// Starts the copy of 64 rows of 128 bytes: 8 threads a row, 4 rows a thread.
__device__ __forceinline__ void copy_tile(uint32_t shared, const half* global) {
  const int row = threadIdx.x >> 3, chunk = threadIdx.x & 7;
#pragma unroll
  for (int i = 0; i < kTile; i += kThreads / 8)
    copy_async(shared + swizzle(row + i, chunk), global + (row + i) * kHeadDim + chunk * 8);
}

// What a lane keeps of its warp's 16 rows: of every 8 columns, two in row
// lane / 4 (elements 0 and 1) and two in row lane / 4 + 8 (elements 2 and 3).
using Accumulator = float[kTile / 8][4];

// scores = Q · Kᵀ. Four steps of 16 along the head dimension.
__device__ __forceinline__ void multiply_qk(Accumulator& scores, const uint32_t (&q)[4][4], uint32_t k) {
  const int lane = threadIdx.x & 31;
  const int row = (lane & 7) + ((lane >> 4) << 3), chunk = (lane >> 3) & 1;
#pragma unroll
  for (int j = 0; j < kTile / 8; ++j)
#pragma unroll
    for (int e = 0; e < 4; ++e) scores[j][e] = 0.f;
#pragma unroll
  for (int step = 0; step < kHeadDim / 16; ++step) {
#pragma unroll
    for (int j = 0; j < kTile / 8; j += 2) {
      uint32_t b[4];
      load_matrices(b, k + swizzle(row + 8 * j, chunk + 2 * step));
      mma(scores[j], q[step], b[0], b[1]);
      mma(scores[j + 1], q[step], b[2], b[3]);
    }
  }
}

// out += P · V. The accumulator of Q · Kᵀ has the layout that the left operand
// needs, so P is packed in place; V is transposed on its way from shared memory.
__device__ __forceinline__ void multiply_pv(Accumulator& out, const Accumulator& p, uint32_t v) {
  const int lane = threadIdx.x & 31;
  const int row = lane & 15, chunk = lane >> 4;
#pragma unroll
  for (int step = 0; step < kTile / 16; ++step) {
    const float(&lo)[4] = p[2 * step];
    const float(&hi)[4] = p[2 * step + 1];
    const uint32_t a[4] = {pack(lo[0], lo[1]), pack(lo[2], lo[3]), pack(hi[0], hi[1]), pack(hi[2], hi[3])};
#pragma unroll
    for (int j = 0; j < kHeadDim / 8; j += 2) {
      uint32_t b[4];
      load_matrices_transposed(b, v + swizzle(row + 16 * step, chunk + j));
      mma(out[j], a, b[0], b[1]);
      mma(out[j + 1], a, b[2], b[3]);
    }
  }
}

// A Row carries the online softmax of one query row: the largest score so far,
// already scaled to a power of two, and this lane's share of the sum.
struct Row {
  float max = -INFINITY;
  float sum = 0.f;
};

// Turns the scores of one row (elements e and e + 1) into probabilities and
// brings the output so far to the new maximum. The same rounded maximum enters
// every exponent of the row, so its rounding cancels when the row is divided.
template <int e>
__device__ __forceinline__ void softmax_step(Row& row, Accumulator& scores, Accumulator& out, float scale) {
  float tile_max = scores[0][e];
#pragma unroll
  for (int j = 0; j < kTile / 8; ++j) tile_max = fmaxf(tile_max, fmaxf(scores[j][e], scores[j][e + 1]));
  const float max = fmaxf(row.max, quad_max(tile_max) * scale);
  const float rescale = exp2_fast(row.max - max);
  row.max = max;
  row.sum *= rescale;
#pragma unroll
  for (int j = 0; j < kTile / 8; ++j) {
    scores[j][e] = exp2_fast(fmaf(scores[j][e], scale, -max));
    scores[j][e + 1] = exp2_fast(fmaf(scores[j][e + 1], scale, -max));
    row.sum += scores[j][e] + scores[j][e + 1];
    out[j][e] *= rescale;
    out[j][e + 1] *= rescale;
  }
}

// Divides by the sums and stores the warp's 16 rows as whole 16-byte chunks, by
// way of the warp's own rows of the Q tile, which nobody reads any more.
__device__ __forceinline__ void store_rows(half* global, uint32_t shared, const Accumulator& out, Row upper, Row lower) {
  const int lane = threadIdx.x & 31;
  const float upper_scale = 1.f / quad_sum(upper.sum), lower_scale = 1.f / quad_sum(lower.sum);
  const int row = lane >> 2, offset = (lane & 3) * 4;
#pragma unroll
  for (int j = 0; j < kHeadDim / 8; ++j) {
    const uint32_t u = pack(out[j][0] * upper_scale, out[j][1] * upper_scale);
    const uint32_t l = pack(out[j][2] * lower_scale, out[j][3] * lower_scale);
    store_word(shared + swizzle(row, j) + offset, u);
    store_word(shared + swizzle(row + 8, j) + offset, l);
  }
  __syncwarp();
#pragma unroll
  for (int i = 0; i < 16; i += 4) {
    const int r = i + (lane >> 3), chunk = lane & 7;
    copy_chunk(global + r * kHeadDim + chunk * 8, shared + swizzle(r, chunk));
  }
}

}  // namespace

// Grid: (length / 64, heads). scale is log2(e)/√D: exponents are powers of two.
extern "C" __global__ void attn_r11_fa2_mma(const half* __restrict__ q, const half* __restrict__ k,
                                            const half* __restrict__ v, half* __restrict__ o, int length,
                                            float scale) {
  __shared__ __align__(128) unsigned char memory[kTileBytes * (1 + 2 * kStages)];
  const uint32_t q_tile = static_cast<uint32_t>(__cvta_generic_to_shared(memory));
  const uint32_t k_tiles = q_tile + kTileBytes;
  const uint32_t v_tiles = k_tiles + kStages * kTileBytes;

  const size_t head = static_cast<size_t>(blockIdx.y) * length * kHeadDim;
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const size_t first_row = head + static_cast<size_t>(blockIdx.x) * kTile * kHeadDim;
  k += head;
  v += head;

  const int tiles = length / kTile;
  const auto copy_k = [&](int tile) { copy_tile(k_tiles + (tile & 1) * kTileBytes, k + tile * kTile * kHeadDim); };
  const auto copy_v = [&](int tile) { copy_tile(v_tiles + (tile & 1) * kTileBytes, v + tile * kTile * kHeadDim); };

  copy_tile(q_tile, q + first_row);
  copy_k(0);
  commit_copies();
  copy_v(0);
  if (tiles > 1) copy_k(1);
  commit_copies();

  uint32_t q_fragments[kHeadDim / 16][4];
  Accumulator scores, next, out = {};
  Row upper, lower;  // query rows lane / 4 and lane / 4 + 8 of the warp

  wait_for_copies<1>();
  __syncthreads();
#pragma unroll
  for (int step = 0; step < kHeadDim / 16; ++step)
    load_matrices(q_fragments[step], q_tile + swizzle(warp * 16 + (lane & 15), 2 * step + (lane >> 4)));
  multiply_qk(scores, q_fragments, k_tiles);

  // The scores of the next tile are on their way through the tensor cores while
  // those of this one go through the exponentials.
  for (int tile = 0; tile < tiles - 1; ++tile) {
    // One barrier a tile says two things: what this round reads has landed for
    // every warp, and every warp is done with the buffers that are filled next.
    wait_for_copies<0>();
    __syncthreads();
    if (tile + 2 < tiles) copy_k(tile + 2);
    copy_v(tile + 1);
    commit_copies();

    multiply_qk(next, q_fragments, k_tiles + ((tile + 1) & 1) * kTileBytes);
    softmax_step<0>(upper, scores, out, scale);
    softmax_step<2>(lower, scores, out, scale);
    multiply_pv(out, scores, v_tiles + (tile & 1) * kTileBytes);
#pragma unroll
    for (int j = 0; j < kTile / 8; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) scores[j][e] = next[j][e];
  }
  wait_for_copies<0>();
  __syncthreads();
  softmax_step<0>(upper, scores, out, scale);
  softmax_step<2>(lower, scores, out, scale);
  multiply_pv(out, scores, v_tiles + ((tiles - 1) & 1) * kTileBytes);
  store_rows(o + first_row + warp * 16 * kHeadDim, q_tile + warp * 16 * kRowBytes, out, upper, lower);
}

extern "C" int gate_run(const gate_call* call, cudaStream_t stream) {
  AttentionCall c;
  if (!unpack(call, &c)) return GATE_UNSUPPORTED;
  const dim3 grid(c.length / kTile, c.heads);
  attn_r11_fa2_mma<<<grid, kThreads, 0, stream>>>(c.q, c.k, c.v, c.o, c.length, kScale * kLog2e);
  return cudaGetLastError();
}
