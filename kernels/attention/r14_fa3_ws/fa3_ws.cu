// r14: long sequences. One warp feeds the copy engine, two or three warpgroups
// multiply; each has the next scores on the tensor cores while it takes the
// exponentials of these. There is a block for each SM: it goes from rows to rows, and
// asks for the first scores of the next ones before the last product of these.
// README.md says what it teaches.

#include <cuda.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>

#include "gate.h"

#ifndef ORDERED
#define ORDERED 1  // warpgroups take turns at the tensor cores
#endif

namespace {

constexpr float kLog2e = 1.4426950408889634f;
constexpr int kRows = 64;   // query rows of a warpgroup
constexpr int kKeys = 128;  // of a tile
constexpr int kStages = 2;
// Powers of two by which scores may exceed the maximum that they are reduced by. FP16
// holds 2^8 and is as exact there as at 1, and most tiles then need no rescaling.
constexpr float kSlack = 8.f;

// A Shape is what the head dimension decides.
template <int dim>
struct Shape {
  static constexpr int warpgroups = dim == 64 ? 3 : 2;  // that compute
  static constexpr int threads = 128 * (warpgroups + 1);
  static constexpr int registers = dim == 64 ? 160 : 240, producer_registers = dim == 64 ? 32 : 24;
  static constexpr int halves = dim / 64;  // columns come in halves of 128 bytes, each swizzled by itself
  static constexpr int q_bytes = kRows * dim * 2, tile_bytes = kKeys * dim * 2;
  static constexpr int q = 0, k = q + warpgroups * q_bytes, v = k + kStages * tile_bytes;
  static constexpr int barriers = v + kStages * tile_bytes;
  // Barriers in the order in which they lie: one for each stage, and of Q one for each warpgroup.
  static constexpr int k_full = 0, k_free = kStages, v_full = 2 * kStages, v_free = 3 * kStages;
  static constexpr int q_full = 4 * kStages, q_free = q_full + warpgroups, num_barriers = q_free + warpgroups;
  static constexpr int shared_bytes = barriers + 8 * num_barriers + 1024;  // and room to align
};

struct Arguments {
  CUtensorMap q, k, v;
  half* out;
  int length, heads;
  float scale;  // log2(e)/√dim
};

// ---- Barriers in shared memory ----

__device__ __forceinline__ void init_barrier(uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
__device__ __forceinline__ void expect_bytes(uint32_t barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
__device__ __forceinline__ void arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ __forceinline__ void wait(uint32_t barrier, int phase) {
  asm volatile(
      "{\n.reg .pred done;\n"
      "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n}" ::"r"(barrier), "r"(phase)
      : "memory");
}
template <int count>
__device__ __forceinline__ void take_turn(int turn) {
  asm volatile("bar.sync %0, %1;" ::"r"(turn + 1), "n"(count) : "memory");
}
template <int count>
__device__ __forceinline__ void give_turn(int turn) {
  asm volatile("bar.arrive %0, %1;" ::"r"(turn + 1), "n"(count) : "memory");
}

// ---- Copies ----

__device__ __forceinline__ void load_box(uint32_t shared, const CUtensorMap* map, int column, int row, uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
          shared),
      "l"(map), "r"(column), "r"(row), "r"(barrier)
      : "memory");
}

// ---- wgmma ----

__device__ __forceinline__ void mma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void mma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// The accumulator of a warpgroup's 64 rows: of every 8 columns a lane has two in
// row lane / 4 (elements 0 and 1) and two in row lane / 4 + 8 of its warp's 16 rows.
template <int columns>
using Accumulator = float[columns / 8][4];

#define GATE_64_COLUMNS(d) \
  "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]), \
      "+f"(d[1][0]), "+f"(d[1][1]), "+f"(d[1][2]), "+f"(d[1][3]), \
      "+f"(d[2][0]), "+f"(d[2][1]), "+f"(d[2][2]), "+f"(d[2][3]), \
      "+f"(d[3][0]), "+f"(d[3][1]), "+f"(d[3][2]), "+f"(d[3][3]), \
      "+f"(d[4][0]), "+f"(d[4][1]), "+f"(d[4][2]), "+f"(d[4][3]), \
      "+f"(d[5][0]), "+f"(d[5][1]), "+f"(d[5][2]), "+f"(d[5][3]), \
      "+f"(d[6][0]), "+f"(d[6][1]), "+f"(d[6][2]), "+f"(d[6][3]), \
      "+f"(d[7][0]), "+f"(d[7][1]), "+f"(d[7][2]), "+f"(d[7][3])
#define GATE_128_COLUMNS(d) \
  "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]), \
      "+f"(d[1][0]), "+f"(d[1][1]), "+f"(d[1][2]), "+f"(d[1][3]), \
      "+f"(d[2][0]), "+f"(d[2][1]), "+f"(d[2][2]), "+f"(d[2][3]), \
      "+f"(d[3][0]), "+f"(d[3][1]), "+f"(d[3][2]), "+f"(d[3][3]), \
      "+f"(d[4][0]), "+f"(d[4][1]), "+f"(d[4][2]), "+f"(d[4][3]), \
      "+f"(d[5][0]), "+f"(d[5][1]), "+f"(d[5][2]), "+f"(d[5][3]), \
      "+f"(d[6][0]), "+f"(d[6][1]), "+f"(d[6][2]), "+f"(d[6][3]), \
      "+f"(d[7][0]), "+f"(d[7][1]), "+f"(d[7][2]), "+f"(d[7][3]), \
      "+f"(d[8][0]), "+f"(d[8][1]), "+f"(d[8][2]), "+f"(d[8][3]), \
      "+f"(d[9][0]), "+f"(d[9][1]), "+f"(d[9][2]), "+f"(d[9][3]), \
      "+f"(d[10][0]), "+f"(d[10][1]), "+f"(d[10][2]), "+f"(d[10][3]), \
      "+f"(d[11][0]), "+f"(d[11][1]), "+f"(d[11][2]), "+f"(d[11][3]), \
      "+f"(d[12][0]), "+f"(d[12][1]), "+f"(d[12][2]), "+f"(d[12][3]), \
      "+f"(d[13][0]), "+f"(d[13][1]), "+f"(d[13][2]), "+f"(d[13][3]), \
      "+f"(d[14][0]), "+f"(d[14][1]), "+f"(d[14][2]), "+f"(d[14][3]), \
      "+f"(d[15][0]), "+f"(d[15][1]), "+f"(d[15][2]), "+f"(d[15][3])

// Waits until at most `running` groups are under way; d is what they may write.
template <int running>
__device__ __forceinline__ void mma_wait(Accumulator<64>& d) {
  asm volatile("wgmma.wait_group.sync.aligned %32;" : GATE_64_COLUMNS(d) : "n"(running) : "memory");
}
template <int running>
__device__ __forceinline__ void mma_wait(Accumulator<128>& d) {
  asm volatile("wgmma.wait_group.sync.aligned %64;" : GATE_128_COLUMNS(d) : "n"(running) : "memory");
}

// Rows of 128 bytes in the 128-byte swizzle: groups of 8 rows are 1,024 bytes
// apart, and the halves of wider rows `half_bytes`. What lies `offset` bytes behind
// `shared` is one addition away: shared memory ends below 256 KB, so that the sum
// stays within the 14 bits of the address.
__device__ __forceinline__ uint64_t tile_descriptor(uint32_t shared, int offset, int half_bytes) {
  const uint32_t low = (static_cast<uint32_t>(half_bytes >> 4) << 16 | (shared & 0x3FFFF) >> 4) + (offset >> 4);
  return (uint64_t{1} << 62) | (uint64_t{1024 >> 4} << 32) | low;
}

// d (+)= A · Bᵀ for 16 of the head's dimensions, both operands in shared memory.
__device__ __forceinline__ void mma_shared(Accumulator<128>& d, uint64_t a, uint64_t b, int accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}, %64, %65, p, 1, 1, 0, 0;\n}"
      : GATE_128_COLUMNS(d)
      : "l"(a), "l"(b), "r"(accumulate));
}
// d += A · B for 16 keys, A in registers, B with its columns along memory.
__device__ __forceinline__ void mma_registers(Accumulator<64>& d, const uint32_t (&a)[4], uint64_t b, int accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, {%32,%33,%34,%35}, %36, p, 1, 1, 1;\n}"
      : GATE_64_COLUMNS(d)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));
}
__device__ __forceinline__ void mma_registers(Accumulator<128>& d, const uint32_t (&a)[4], uint64_t b, int accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}, {%64,%65,%66,%67}, %68, p, 1, 1, 1;\n}"
      : GATE_128_COLUMNS(d)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));
}

// ---- Softmax ----

__device__ __forceinline__ float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ uint32_t pack(float lo, float hi) {
  const half2 h = __floats2half2_rn(lo, hi);
  return reinterpret_cast<const uint32_t&>(h);
}
__device__ __forceinline__ float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
  return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}
__device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}

// A Row carries the online softmax of one query row: the maximum that scores are
// reduced by, in powers of two, which none so far exceeds by more than kSlack; this
// lane's share of the sum; and what the output so far is multiplied with before the
// next product.
struct Row {
  float max = -INFINITY, sum = 0.f, rescale = 1.f;
};

// Turns the scores of one row (elements e and e + 1) into probabilities.
template <int e>
__device__ __forceinline__ void softmax_step(Row& row, Accumulator<kKeys>& scores, float scale) {
  float tile_max = scores[0][e];
#pragma unroll
  for (int j = 0; j < kKeys / 8; ++j) tile_max = fmaxf(tile_max, fmaxf(scores[j][e], scores[j][e + 1]));
  const float largest = fmaxf(row.max, quad_max(tile_max) * scale);
  const float max = largest > row.max + kSlack ? largest : row.max;
  row.rescale = exp2_fast(row.max - max);
  row.max = max;
  row.sum *= row.rescale;
#pragma unroll
  for (int j = 0; j < kKeys / 8; ++j) {
    scores[j][e] = exp2_fast(fmaf(scores[j][e], scale, -max));
    scores[j][e + 1] = exp2_fast(fmaf(scores[j][e + 1], scale, -max));
    row.sum += scores[j][e] + scores[j][e + 1];
  }
}

__device__ __forceinline__ void softmax(Row& upper, Row& lower, Accumulator<kKeys>& scores, float scale) {
  softmax_step<0>(upper, scores, scale);
  softmax_step<2>(lower, scores, scale);
}

using Probabilities = uint32_t[kKeys / 16][4];

__device__ __forceinline__ void pack_scores(Probabilities& p, const Accumulator<kKeys>& scores) {
#pragma unroll
  for (int step = 0; step < kKeys / 16; ++step) {
    const float(&lo)[4] = scores[2 * step];
    const float(&hi)[4] = scores[2 * step + 1];
    p[step][0] = pack(lo[0], lo[1]), p[step][1] = pack(lo[2], lo[3]);
    p[step][2] = pack(hi[0], hi[1]), p[step][3] = pack(hi[2], hi[3]);
  }
}

template <int dim>
__device__ __forceinline__ void issue_qk(Accumulator<kKeys>& scores, uint32_t q, uint32_t k) {
  mma_fence();
#pragma unroll
  for (int step = 0; step < dim / 16; ++step) {
    const int half = step / 4, offset = step % 4 * 32;
    mma_shared(scores, tile_descriptor(q, half * kRows * 128 + offset, 16), tile_descriptor(k, half * kKeys * 128 + offset, 16), step > 0);
  }
  mma_commit();
}
template <int dim>
__device__ __forceinline__ void issue_pv(Accumulator<dim>& out, const Probabilities& p, uint32_t v, bool first) {
  mma_fence();
#pragma unroll
  for (int step = 0; step < kKeys / 16; ++step)
    mma_registers(out, p[step], tile_descriptor(v, step * 2048, kKeys * 128), step > 0 || !first);
  mma_commit();
}
template <int dim>
__device__ __forceinline__ void rescale(Accumulator<dim>& out, const Row& upper, const Row& lower) {
  // A warp goes one way as a whole, for wgmma needs all of its lanes.
  if (!__any_sync(~0u, upper.rescale != 1.f || lower.rescale != 1.f)) return;
#pragma unroll
  for (int j = 0; j < dim / 8; ++j) {
    out[j][0] *= upper.rescale, out[j][1] *= upper.rescale;
    out[j][2] *= lower.rescale, out[j][3] *= lower.rescale;
  }
}

// A Course is what a block does: row blocks, as far apart as there are blocks, and for
// each one tile of keys after the other. Row blocks of one head are neighbours, so that
// blocks that run together read the same keys.
template <int dim>
struct Course {
  static constexpr int rows = kRows * Shape<dim>::warpgroups;  // of a row block
  const int length;
  int tiles;           // of keys, in a row block
  int block, key = 0;  // where it stands: the row block, and the tile of keys
  int left;            // tiles from here to the end

  __device__ __forceinline__ Course(int length, int heads) : length(length), tiles(length / kKeys), block(blockIdx.x) {
    const int step = gridDim.x, blocks = in_head() * heads;
    left = ((blocks - 1 - block) / step + 1) * tiles;
  }
  // Goes on by a tile; true if it is the first one of a row block.
  __device__ __forceinline__ bool advance() {
    --left;
    if (++key < tiles) return false;
    key = 0;
    block += gridDim.x;
    return true;
  }
  // Whether it stands at the last tile of the row block.
  __device__ __forceinline__ bool last() const { return key + 1 == tiles; }
  // The row blocks of a head; the head of a row block, and where in that it begins.
  __device__ __forceinline__ int in_head() const { return (length + rows - 1) / rows; }
  __device__ __forceinline__ int head(int of) const { return of / in_head(); }
  __device__ __forceinline__ int row_in_head(int of) const { return of % in_head() * rows; }
};

template <int dim>
__device__ __forceinline__ uint32_t barrier_at(uint32_t base, int i) {
  return base + Shape<dim>::barriers + 8 * i;
}

// How many arrivals a barrier waits for: one of each warp that frees a stage or Q, and
// one of the thread that fills it.
template <int dim>
__device__ __forceinline__ int arrivals(int i) {
  using S = Shape<dim>;
  if (i >= S::q_free) return 4;
  const bool free = i < S::q_full && i / kStages % 2 == 1;
  return free ? 4 * S::warpgroups : 1;
}

// One warp asks for all tiles, as far ahead as there are stages, and for the next Q of a
// warpgroup when that has the last scores of the rows before.
template <int dim>
__device__ __forceinline__ void produce(uint32_t base, const Arguments& a) {
  using S = Shape<dim>;
  Course<dim> at(a.length, a.heads);
  const auto barrier = [&](int i) { return barrier_at<dim>(base, i); };
  bool fresh = true;
  int q_phase = 1;
  for (int tile = 0; at.left > 0; ++tile) {
    const int stage = tile % kStages, free = (tile / kStages + 1) & 1, first_key = at.head(at.block) * a.length;
    const auto load = [&](int full, int empty, int offset, const CUtensorMap* map) {
      wait(barrier(empty + stage), free);
      expect_bytes(barrier(full + stage), S::tile_bytes);
      for (int half = 0; half < S::halves; ++half)
        load_box(base + offset + stage * S::tile_bytes + half * kKeys * 128, map, 64 * half, first_key + at.key * kKeys, barrier(full + stage));
    };
    load(S::k_full, S::k_free, S::k, &a.k);
    if (fresh) {
      for (int group = 0; group < S::warpgroups; ++group) {
        wait(barrier(S::q_free + group), q_phase);
        expect_bytes(barrier(S::q_full + group), S::q_bytes);
        const int row = first_key + at.row_in_head(at.block) + group * kRows;
        for (int half = 0; half < S::halves; ++half)
          load_box(base + S::q + group * S::q_bytes + half * kRows * 128, &a.q, 64 * half, row, barrier(S::q_full + group));
      }
      q_phase ^= 1;
    }
    load(S::v_full, S::v_free, S::v, &a.v);
    fresh = at.advance();
  }
}

// Operands are what a warpgroup waits for and frees: its rows of Q, and K and V by the
// number of the tile in the block's course.
template <int dim>
struct Operands {
  using S = Shape<dim>;
  const uint32_t base;
  const int group, lane;

  __device__ __forceinline__ uint32_t k(int tile) const { return base + S::k + tile % kStages * S::tile_bytes; }
  __device__ __forceinline__ uint32_t v(int tile) const { return base + S::v + tile % kStages * S::tile_bytes; }
  __device__ __forceinline__ void wait_q(int phase) const { wait(barrier_at<dim>(base, S::q_full + group), phase); }
  __device__ __forceinline__ void wait_k(int tile) const { wait(barrier_at<dim>(base, S::k_full + tile % kStages), tile / kStages & 1); }
  __device__ __forceinline__ void wait_v(int tile) const { wait(barrier_at<dim>(base, S::v_full + tile % kStages), tile / kStages & 1); }
  __device__ __forceinline__ void free_q() const { free(S::q_free + group); }
  __device__ __forceinline__ void free_k(int tile) const { free(S::k_free + tile % kStages); }
  __device__ __forceinline__ void free_v(int tile) const { free(S::v_free + tile % kStages); }

 private:
  __device__ __forceinline__ void free(int i) const { if (lane == 0) arrive(barrier_at<dim>(base, i)); }
};

// Stores a warpgroup's rows, which begin at `first_row` of the head that begins at `head_row`.
template <int dim>
__device__ __forceinline__ void store(const Arguments& a, const Accumulator<dim>& out, const Row& upper, const Row& lower, int head_row, int first_row) {
  const float u = 1.f / quad_sum(upper.sum), l = 1.f / quad_sum(lower.sum);
  const int thread = threadIdx.x % 128, lane = thread % 32, row = first_row + thread / 32 * 16 + lane / 4;
  half* to = a.out + static_cast<size_t>(head_row + row) * dim + lane % 4 * 2;
#pragma unroll
  for (int j = 0; j < dim / 8; ++j) {
    if (row < a.length) *reinterpret_cast<uint32_t*>(to + 8 * j) = pack(out[j][0] * u, out[j][1] * u);
    if (row + 8 < a.length) *reinterpret_cast<uint32_t*>(to + 8 * dim + 8 * j) = pack(out[j][2] * l, out[j][3] * l);
  }
}

// All tiles of a block's course are one sequence: while the last product of a row block
// runs, the first scores of the next one are on their way.
template <int dim>
__device__ __forceinline__ void consume(uint32_t base, int group, const Arguments& a) {
  using S = Shape<dim>;
  const Operands<dim> in{base, group, static_cast<int>(threadIdx.x % 32)};
  const uint32_t q = base + S::q + group * S::q_bytes;
  constexpr int both = 256;  // threads that meet when one warpgroup gives its turn to the next
  const int next = (group + 1) % S::warpgroups;
  const auto take = [&] { if (ORDERED) take_turn<both>(group); };
  // Without more to do, the last warpgroup gives no turn, for none would take it.
  const auto give = [&](bool more) { if (ORDERED && (more || next > 0)) give_turn<both>(next); };

  Course<dim> at(a.length, a.heads);  // the tile whose scores are asked for last
  Accumulator<kKeys> scores;
  Accumulator<dim> out;
  Probabilities p;  // of the tile before
  Row upper, lower;
  int q_phase = 0;
  in.wait_q(q_phase);
  in.wait_k(0);
  if (ORDERED && group == S::warpgroups - 1) give_turn<both>(0);
  take();
  issue_qk<dim>(scores, q, in.k(0));
  mma_wait<0>(scores);
  in.free_k(0);
  if (at.last()) in.free_q();
  give(at.left > 1);
  softmax(upper, lower, scores, a.scale);
  pack_scores(p, scores);

  bool first = true;  // tile of its row block, which p belongs to
  const auto multiply = [&](int tile) {
    if (!first) rescale<dim>(out, upper, lower);
    in.wait_v(tile);
    issue_pv<dim>(out, p, in.v(tile), first);
  };
  const auto store_block = [&](int block, const Row& u, const Row& l) {
    store<dim>(a, out, u, l, at.head(block) * a.length, at.row_in_head(block) + group * kRows);
  };
  int tile = 1;
  for (; at.left > 1; ++tile) {
    const int block = at.block;
    const bool fresh = at.advance();
    if (fresh) in.wait_q(q_phase ^= 1);
    in.wait_k(tile);
    take();
    issue_qk<dim>(scores, q, in.k(tile));
    multiply(tile - 1);
    give(at.left > 1);
    mma_wait<1>(scores);
    in.free_k(tile);
    if (at.last()) in.free_q();
    const Row upper_before = upper, lower_before = lower;
    if (fresh) upper = Row(), lower = Row();
    softmax(upper, lower, scores, a.scale);
    mma_wait<0>(out);
    in.free_v(tile - 1);
    if (fresh) store_block(block, upper_before, lower_before);
    pack_scores(p, scores);
    first = fresh;
  }
  multiply(tile - 1);
  mma_wait<0>(out);
  store_block(at.block, upper, lower);
}

template <int dim>
__device__ __forceinline__ void attend(const Arguments& a) {
  using S = Shape<dim>;
  extern __shared__ unsigned char memory[];
  const uint32_t base = (static_cast<uint32_t>(__cvta_generic_to_shared(memory)) + 1023) & ~1023u;
  const int number = __shfl_sync(~0u, threadIdx.x / 128, 0);  // of the warpgroup; the first one loads
  if (threadIdx.x == 0) {
    for (int i = 0; i < S::num_barriers; ++i) init_barrier(barrier_at<dim>(base, i), arrivals<dim>(i));
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncthreads();
  if (number == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(S::producer_registers));
    if (threadIdx.x == 0) produce<dim>(base, a);
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(S::registers));
    consume<dim>(base, number - 1, a);
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(Shape<64>::threads, 1) attn_r14_fa3_ws_64(const __grid_constant__ Arguments a) { attend<64>(a); }
extern "C" __global__ void __launch_bounds__(Shape<128>::threads, 1) attn_r14_fa3_ws_128(const __grid_constant__ Arguments a) { attend<128>(a); }

namespace {

using Encode = decltype(&cuTensorMapEncodeTiled);

// cuTensorMapEncodeTiled, found at run time so that nothing links to the driver.
Encode encoder() {
  static const Encode function = [] {
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult result;
    const cudaError_t error =
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &result);
    return error == cudaSuccess && result == cudaDriverEntryPointSuccess ? reinterpret_cast<Encode>(entry) : nullptr;
  }();
  return function;
}

// Describes an array of rows, to be copied 64 columns wide.
bool describe(CUtensorMap* map, const void* data, int64_t rows, int dim, int box_rows) {
  const cuuint64_t dims[2] = {static_cast<cuuint64_t>(dim), static_cast<cuuint64_t>(rows)};
  const cuuint64_t strides[1] = {static_cast<cuuint64_t>(dim) * 2};
  const cuuint32_t box[2] = {64, static_cast<cuuint32_t>(box_rows)}, steps[2] = {1, 1};
  const auto encode = encoder();
  return encode != nullptr &&
         encode(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, const_cast<void*>(data), dims, strides, box, steps,
                CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

int multiprocessors = 0;  // blocks to launch at most: gate_prepare asks for it

int count_multiprocessors() {
  int device = 0;
  const cudaError_t error = cudaGetDevice(&device);
  return error != cudaSuccess ? error : cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
}

template <int dim, class Kernel>
int launch(Kernel kernel, const gate_call* call, cudaStream_t stream) {
  using S = Shape<dim>;
  const int64_t heads = call->dims[0] * call->dims[1], length = call->dims[2];
  if (length < kKeys || length % kKeys != 0 || heads * length > INT32_MAX) return GATE_UNSUPPORTED;
  if (multiprocessors <= 0) return cudaErrorInitializationError;
  const int64_t row_blocks = heads * ((length + Course<dim>::rows - 1) / Course<dim>::rows);
  const int64_t blocks = std::min<int64_t>(row_blocks, multiprocessors);
  const int64_t tiles = (row_blocks + blocks - 1) / blocks * (length / kKeys);
  if (tiles > INT32_MAX) return GATE_UNSUPPORTED;  // a Course counts them
  Arguments a;
  if (!describe(&a.q, call->inputs[0], heads * length, dim, kRows) || !describe(&a.k, call->inputs[1], heads * length, dim, kKeys) ||
      !describe(&a.v, call->inputs[2], heads * length, dim, kKeys))
    return cudaErrorInvalidValue;
  a.out = static_cast<half*>(call->outputs[0]);
  a.length = static_cast<int>(length), a.heads = static_cast<int>(heads);
  a.scale = kLog2e / (dim == 64 ? 8.f : 11.3137085f);
  kernel<<<static_cast<unsigned>(blocks), S::threads, S::shared_bytes, stream>>>(a);
  return cudaGetLastError();
}

}  // namespace

extern "C" int gate_prepare(const gate_call*) {
  if (const int e = count_multiprocessors(); e != 0) return e;
  const auto attribute = cudaFuncAttributeMaxDynamicSharedMemorySize;
  const cudaError_t error = cudaFuncSetAttribute(attn_r14_fa3_ws_64, attribute, Shape<64>::shared_bytes);
  return error != cudaSuccess ? error : cudaFuncSetAttribute(attn_r14_fa3_ws_128, attribute, Shape<128>::shared_bytes);
}

extern "C" int gate_run(const gate_call* call, cudaStream_t stream) {
  if (call->num_dims != 4 || call->num_inputs != 3 || call->num_outputs != 1) return GATE_UNSUPPORTED;
  if (call->dims[3] == 64) return launch<64>(attn_r14_fa3_ws_64, call, stream);
  if (call->dims[3] == 128) return launch<128>(attn_r14_fa3_ws_128, call, stream);
  return GATE_UNSUPPORTED;
}
