// r14: long sequences. One warp feeds the copy engine, two or three warpgroups
// multiply; each has the next scores on the tensor cores while it takes the
// exponentials of these. README.md says what it teaches.

#include <cuda.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "gate.h"

#ifndef ORDERED
#define ORDERED 1  // warpgroups take turns at the tensor cores
#endif

namespace {

constexpr float kLog2e = 1.4426950408889634f;
constexpr int kRows = 64;   // query rows of a warpgroup
constexpr int kKeys = 128;  // of a tile
constexpr int kStages = 2;

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
  static constexpr int shared_bytes = barriers + 8 * (1 + 4 * kStages) + 1024;  // and room to align
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
// apart, and the halves of wider rows `half_bytes`.
__device__ __forceinline__ uint64_t tile_descriptor(uint32_t shared, int half_bytes) {
  return (uint64_t{1} << 62) | (uint64_t{1024 >> 4} << 32) | (static_cast<uint64_t>(half_bytes >> 4) << 16) | ((shared & 0x3FFFF) >> 4);
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

// A Row carries the online softmax of one query row: the largest score so far, in
// powers of two, this lane's share of the sum, and what the output so far is
// multiplied with before the next product.
struct Row {
  float max = -INFINITY, sum = 0.f, rescale = 1.f;
};

// Turns the scores of one row (elements e and e + 1) into probabilities.
template <int e>
__device__ __forceinline__ void softmax_step(Row& row, Accumulator<kKeys>& scores, float scale) {
  float tile_max = scores[0][e];
#pragma unroll
  for (int j = 0; j < kKeys / 8; ++j) tile_max = fmaxf(tile_max, fmaxf(scores[j][e], scores[j][e + 1]));
  const float max = fmaxf(row.max, quad_max(tile_max) * scale);
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
    mma_shared(scores, tile_descriptor(q + half * kRows * 128 + offset, 16), tile_descriptor(k + half * kKeys * 128 + offset, 16), step > 0);
  }
  mma_commit();
}
template <int dim>
__device__ __forceinline__ void issue_pv(Accumulator<dim>& out, const Probabilities& p, uint32_t v, bool first) {
  mma_fence();
#pragma unroll
  for (int step = 0; step < kKeys / 16; ++step)
    mma_registers(out, p[step], tile_descriptor(v + step * 2048, kKeys * 128), step > 0 || !first);
  mma_commit();
}
template <int dim>
__device__ __forceinline__ void rescale(Accumulator<dim>& out, const Row& upper, const Row& lower) {
#pragma unroll
  for (int j = 0; j < dim / 8; ++j) {
    out[j][0] *= upper.rescale, out[j][1] *= upper.rescale;
    out[j][2] *= lower.rescale, out[j][3] *= lower.rescale;
  }
}

// One warp asks for all tiles, as far ahead as there are stages.
template <int dim>
__device__ __forceinline__ void produce(uint32_t base, const CUtensorMap* q_map, const CUtensorMap* k_map, const CUtensorMap* v_map,
                                        int first_row, int first_key, int tiles) {
  using S = Shape<dim>;
  const auto barrier = [&](int i) { return base + S::barriers + 8 * i; };
  expect_bytes(barrier(0), S::warpgroups * S::q_bytes);
  for (int group = 0; group < S::warpgroups; ++group)
    for (int half = 0; half < S::halves; ++half)
      load_box(base + S::q + group * S::q_bytes + half * kRows * 128, q_map, 64 * half, first_row + group * kRows, barrier(0));
  for (int tile = 0; tile < tiles; ++tile) {
    const int stage = tile % kStages, free = (tile / kStages + 1) & 1;
    const auto load = [&](int full, int empty, int offset, const CUtensorMap* map) {
      wait(barrier(empty + stage), free);
      expect_bytes(barrier(full + stage), S::tile_bytes);
      for (int half = 0; half < S::halves; ++half)
        load_box(base + offset + stage * S::tile_bytes + half * kKeys * 128, map, 64 * half, first_key + tile * kKeys, barrier(full + stage));
    };
    load(1, 1 + kStages, S::k, k_map);
    load(1 + 2 * kStages, 1 + 3 * kStages, S::v, v_map);
  }
}

template <int dim>
__device__ __forceinline__ void consume(uint32_t base, half* o, int rows, int group, int tiles, float scale) {
  using S = Shape<dim>;
  const int thread = threadIdx.x % 128, lane = thread % 32;
  const auto barrier = [&](int i) { return base + S::barriers + 8 * i; };
  const uint32_t q = base + S::q + group * S::q_bytes;
  const auto k = [&](int tile) { return base + S::k + tile % kStages * S::tile_bytes; };
  const auto v = [&](int tile) { return base + S::v + tile % kStages * S::tile_bytes; };
  const auto wait_k = [&](int tile) { wait(barrier(1 + tile % kStages), tile / kStages & 1); };
  const auto wait_v = [&](int tile) { wait(barrier(1 + 2 * kStages + tile % kStages), tile / kStages & 1); };
  const auto free_k = [&](int tile) { if (lane == 0) arrive(barrier(1 + kStages + tile % kStages)); };
  const auto free_v = [&](int tile) { if (lane == 0) arrive(barrier(1 + 3 * kStages + tile % kStages)); };
  constexpr int both = 256;  // threads that meet when one warpgroup gives its turn to the next
  const int next = (group + 1) % S::warpgroups;

  Accumulator<kKeys> scores;
  Accumulator<dim> out;
  Probabilities p;
  Row upper, lower;
  wait(barrier(0), 0);
  wait_k(0);
  if (ORDERED && group == S::warpgroups - 1) give_turn<both>(0);
  if (ORDERED) take_turn<both>(group);
  issue_qk<dim>(scores, q, k(0));
  mma_wait<0>(scores);
  free_k(0);
  if (ORDERED && (tiles > 1 || next > 0)) give_turn<both>(next);
  softmax_step<0>(upper, scores, scale);
  softmax_step<2>(lower, scores, scale);
  pack_scores(p, scores);

  for (int tile = 1; tile < tiles; ++tile) {
    wait_k(tile);
    if (ORDERED) take_turn<both>(group);
    issue_qk<dim>(scores, q, k(tile));
    if (tile > 1) rescale<dim>(out, upper, lower);
    wait_v(tile - 1);
    issue_pv<dim>(out, p, v(tile - 1), tile == 1);
    if (ORDERED && (tile + 1 < tiles || next > 0)) give_turn<both>(next);
    mma_wait<1>(scores);
    free_k(tile);
    softmax_step<0>(upper, scores, scale);
    softmax_step<2>(lower, scores, scale);
    mma_wait<0>(out);
    free_v(tile - 1);
    pack_scores(p, scores);
  }
  if (tiles > 1) rescale<dim>(out, upper, lower);
  wait_v(tiles - 1);
  issue_pv<dim>(out, p, v(tiles - 1), tiles == 1);
  mma_wait<0>(out);

  const float u = 1.f / quad_sum(upper.sum), l = 1.f / quad_sum(lower.sum);
  const int row = thread / 32 * 16 + lane / 4;
  half* to = o + static_cast<size_t>(row) * dim + lane % 4 * 2;
#pragma unroll
  for (int j = 0; j < dim / 8; ++j) {
    if (row < rows) *reinterpret_cast<uint32_t*>(to + 8 * j) = pack(out[j][0] * u, out[j][1] * u);
    if (row + 8 < rows) *reinterpret_cast<uint32_t*>(to + 8 * dim + 8 * j) = pack(out[j][2] * l, out[j][3] * l);
  }
}

// Grid: (blocks of rows, heads). scale is log2(e)/√dim.
template <int dim>
__device__ __forceinline__ void attend(const CUtensorMap* q_map, const CUtensorMap* k_map, const CUtensorMap* v_map, half* o, int length, float scale) {
  using S = Shape<dim>;
  extern __shared__ unsigned char memory[];
  const uint32_t base = (static_cast<uint32_t>(__cvta_generic_to_shared(memory)) + 1023) & ~1023u;
  const int number = __shfl_sync(~0u, threadIdx.x / 128, 0);  // of the warpgroup; the first one loads
  const int first_key = blockIdx.y * length, in_head = blockIdx.x * kRows * S::warpgroups, tiles = length / kKeys;
  if (threadIdx.x == 0) {
    for (int i = 0; i < 1 + 4 * kStages; ++i) {
      const bool empty = (i > kStages && i <= 2 * kStages) || i > 3 * kStages;
      init_barrier(base + S::barriers + 8 * i, empty ? 4 * S::warpgroups : 1);
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncthreads();
  if (number == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(S::producer_registers));
    if (threadIdx.x == 0) produce<dim>(base, q_map, k_map, v_map, first_key + in_head, first_key, tiles);
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(S::registers));
    const int row = in_head + (number - 1) * kRows;
    consume<dim>(base, o + static_cast<size_t>(first_key + row) * dim, length - row, number - 1, tiles, scale);
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(Shape<64>::threads, 1)
    attn_r14_fa3_ws_64(const __grid_constant__ CUtensorMap q, const __grid_constant__ CUtensorMap k,
                       const __grid_constant__ CUtensorMap v, half* __restrict__ o, int length, float scale) {
  attend<64>(&q, &k, &v, o, length, scale);
}
extern "C" __global__ void __launch_bounds__(Shape<128>::threads, 1)
    attn_r14_fa3_ws_128(const __grid_constant__ CUtensorMap q, const __grid_constant__ CUtensorMap k,
                        const __grid_constant__ CUtensorMap v, half* __restrict__ o, int length, float scale) {
  attend<128>(&q, &k, &v, o, length, scale);
}

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

template <int dim, class Kernel>
int launch(Kernel kernel, const gate_call* call, cudaStream_t stream) {
  using S = Shape<dim>;
  const int64_t heads = call->dims[0] * call->dims[1], length = call->dims[2];
  if (heads > 65535 || length < kKeys || length % kKeys != 0 || heads * length > INT32_MAX) return GATE_UNSUPPORTED;
  CUtensorMap q, k, v;
  if (!describe(&q, call->inputs[0], heads * length, dim, kRows) || !describe(&k, call->inputs[1], heads * length, dim, kKeys) ||
      !describe(&v, call->inputs[2], heads * length, dim, kKeys))
    return cudaErrorInvalidValue;
  const int rows = kRows * S::warpgroups;
  const dim3 grid(static_cast<unsigned>((length + rows - 1) / rows), static_cast<unsigned>(heads));
  const float scale = kLog2e / (dim == 64 ? 8.f : 11.3137085f);
  kernel<<<grid, S::threads, S::shared_bytes, stream>>>(q, k, v, static_cast<half*>(call->outputs[0]), static_cast<int>(length), scale);
  return cudaGetLastError();
}

}  // namespace

extern "C" int gate_prepare(const gate_call*) {
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
