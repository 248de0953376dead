// r13: one wave of blocks that split the keys, wgmma for both products. A block
// owns 64 query rows and, with its cluster, all keys of a head: each warpgroup of
// the cluster takes a share of the keys, and the partial results meet once, at the
// end. README.md says what it teaches.

#include <cuda.h>
#include <cuda_fp16.h>

#include "../attention.h"

namespace {

constexpr int kTile = 64;  // query rows of a block, keys of a tile
constexpr int kWarpgroups = 2;
constexpr int kSubtiles = 2;  // tiles of 64 keys that a warpgroup takes
constexpr int kCluster = 2;   // blocks that share the keys of a head
constexpr int kTiles = kWarpgroups * kSubtiles;       // of keys, in a block
constexpr int kKeys = kTile * kTiles * kCluster;      // the length that the kernel takes
constexpr int kThreads = 128 * kWarpgroups;
constexpr int kTileBytes = kTile * kHeadDim * 2;  // rows of 128 bytes, swizzled
constexpr int kPartials = kWarpgroups * kCluster;  // results to merge for each row
constexpr int kOwned = 4 / kCluster;              // groups of 16 rows that a block finishes
constexpr int kSlices = 4 * kWarpgroups / kOwned;  // of the columns, one for each warp and group of rows
constexpr int kVectors = 4 / kSlices;             // of 16 bytes, a lane's FP16 share of a slice

// Shared memory: Q, K and V tiles; results to merge, and for each pair of their
// rows maxima and sums; barriers.
constexpr int kQ = 0;
constexpr int kK = kQ + kTileBytes;
constexpr int kV = kK + kTiles * kTileBytes;
constexpr int kExchange = kV + kTiles * kTileBytes;  // [partial][owned][slice][vector][lane] of 16 bytes
constexpr int kStatistics = kExchange + kPartials * kOwned * 4 * 32 * 16;  // [partial][owned][pair] of 16 bytes
constexpr int kBarriers = kStatistics + kPartials * kOwned * 8 * 16;       // Q, K tiles, V tiles, merge
constexpr int kMergeBarrier = 1 + 2 * kTiles;
constexpr int kSharedBytes = kBarriers + 8 * (kMergeBarrier + 1) + 1024;  // and room to align
constexpr int kRemoteBytes = (kPartials - kWarpgroups) * kOwned * (4 * 32 + 8) * 16;

static_assert(kVectors >= 1, "a slice is made of whole vectors");
static_assert(kCluster <= 2, "a block has at most one partner");
static_assert(2 * kTiles <= 4 * kWarpgroups, "a warp asks for at most one tile");

// ---- Barriers in shared memory ----

__device__ __forceinline__ void init_barrier(uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
__device__ __forceinline__ void expect_bytes(uint32_t barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
// Waits for the barrier's first phase: none here has a second.
__device__ __forceinline__ void wait(uint32_t barrier) {
  asm volatile(
      "{\n.reg .pred done;\n"
      "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;\n"
      "@!done bra again;\n}" ::"r"(barrier)
      : "memory");
}
// Relaxed: fence.mbarrier_init has made public what the other block needs.
__device__ __forceinline__ void cluster_arrive() { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }
__device__ __forceinline__ void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }

// ---- Copies ----

// One tile of 64 rows by the copy engine, which swizzles as wgmma reads.
__device__ __forceinline__ void load_tile(uint32_t shared, const CUtensorMap* map, int row, uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
          shared),
      "l"(map), "r"(0), "r"(row), "r"(barrier)
      : "memory");
}
__device__ __forceinline__ void prefetch_map(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

__device__ __forceinline__ void store_vector(uint32_t shared, uint4 w) {
  asm volatile("st.shared.v4.b32 [%0], {%1,%2,%3,%4};" ::"r"(shared), "r"(w.x), "r"(w.y), "r"(w.z), "r"(w.w) : "memory");
}
__device__ __forceinline__ uint4 load_vector(uint32_t shared) {
  uint4 r;
  asm volatile("ld.shared.v4.b32 {%0,%1,%2,%3}, [%4];" : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w) : "r"(shared) : "memory");
  return r;
}
// A store into another block of the cluster, counted by a barrier there.
__device__ __forceinline__ void send_vector(uint32_t remote, uint4 w, uint32_t remote_barrier) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1,%2,%3,%4}, [%5];" ::"r"(remote),
               "r"(w.x), "r"(w.y), "r"(w.z), "r"(w.w), "r"(remote_barrier)
               : "memory");
}
__device__ __forceinline__ uint32_t address_in(uint32_t shared, int rank) {
  uint32_t r;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(shared), "r"(rank));
  return r;
}

// ---- wgmma ----

__device__ __forceinline__ void mma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void mma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// The accumulator of a 64×64 product: of every 8 columns a lane has two in row
// lane / 4 (elements 0 and 1) and two in row lane / 4 + 8 of its warp's 16 rows.
using Accumulator = float[8][4];

// Waits until at most `running` groups are under way; d is what they may write.
template <int running>
__device__ __forceinline__ void mma_wait(Accumulator& d) {
  asm volatile("wgmma.wait_group.sync.aligned %32;"
               : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]), "+f"(d[1][0]), "+f"(d[1][1]),
                 "+f"(d[1][2]), "+f"(d[1][3]), "+f"(d[2][0]), "+f"(d[2][1]), "+f"(d[2][2]), "+f"(d[2][3]),
                 "+f"(d[3][0]), "+f"(d[3][1]), "+f"(d[3][2]), "+f"(d[3][3]), "+f"(d[4][0]), "+f"(d[4][1]),
                 "+f"(d[4][2]), "+f"(d[4][3]), "+f"(d[5][0]), "+f"(d[5][1]), "+f"(d[5][2]), "+f"(d[5][3]),
                 "+f"(d[6][0]), "+f"(d[6][1]), "+f"(d[6][2]), "+f"(d[6][3]), "+f"(d[7][0]), "+f"(d[7][1]),
                 "+f"(d[7][2]), "+f"(d[7][3])
               : "n"(running)
               : "memory");
}

// A tile of 128-byte rows in the 128-byte swizzle, groups of 8 rows 1,024 bytes apart.
__device__ __forceinline__ uint64_t tile_descriptor(uint32_t shared) {
  return (uint64_t{1} << 62) | (uint64_t{1024 >> 4} << 32) | (uint64_t{1} << 16) | ((shared & 0x3FFFF) >> 4);
}

#define GATE_ACCUMULATOR(d)                                                                                        \
  "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]), "+f"(d[1][0]), "+f"(d[1][1]), "+f"(d[1][2]),         \
      "+f"(d[1][3]), "+f"(d[2][0]), "+f"(d[2][1]), "+f"(d[2][2]), "+f"(d[2][3]), "+f"(d[3][0]), "+f"(d[3][1]),     \
      "+f"(d[3][2]), "+f"(d[3][3]), "+f"(d[4][0]), "+f"(d[4][1]), "+f"(d[4][2]), "+f"(d[4][3]), "+f"(d[5][0]),     \
      "+f"(d[5][1]), "+f"(d[5][2]), "+f"(d[5][3]), "+f"(d[6][0]), "+f"(d[6][1]), "+f"(d[6][2]), "+f"(d[6][3]),     \
      "+f"(d[7][0]), "+f"(d[7][1]), "+f"(d[7][2]), "+f"(d[7][3])
#define GATE_REGISTERS                                                                               \
  "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}"

// d (+)= A · Bᵀ for 16 of the head's dimensions, both operands in shared memory.
__device__ __forceinline__ void mma_shared(Accumulator& d, uint64_t a, uint64_t b, int accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " GATE_REGISTERS ", %32, %33, p, 1, 1, 0, 0;\n}"
      : GATE_ACCUMULATOR(d)
      : "l"(a), "l"(b), "r"(accumulate));
}
// d (+)= A · B for 16 keys, A in registers, B with its columns along memory.
__device__ __forceinline__ void mma_registers(Accumulator& d, const uint32_t (&a)[4], uint64_t b, int accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " GATE_REGISTERS ", {%32,%33,%34,%35}, %36, p, 1, 1, 1;\n}"
      : GATE_ACCUMULATOR(d)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));
}

// ---- Softmax ----

__device__ __forceinline__ float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// The same on the multiply-add pipe, for x ≤ 0: 2 to the nearest whole number by
// way of the exponent's bits, times a polynomial for what is left. NaN stays NaN.
__device__ __forceinline__ float exp2_polynomial(float x) {
  float bounded;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(bounded) : "f"(x), "f"(-125.f));
  constexpr float magic = 12582912.f;  // 1.5 · 2^23: its sum with x is rounded to a whole number
  const float shifted = bounded + magic, rest = bounded - (shifted - magic);
  float p = fmaf(rest, 0.05517167f, 0.24261112f);  // within 7.5e-5, a sixth of FP16's rounding
  p = fmaf(p, rest, 0.69326099f);
  p = fmaf(p, rest, 0.99992807f);
  return __int_as_float(__float_as_int(p) + (__float_as_int(shifted) << 23));
}
__device__ __forceinline__ uint32_t pack(float lo, float hi) {
  const half2 h = __floats2half2_rn(lo, hi);
  return reinterpret_cast<const uint32_t&>(h);
}
__device__ __forceinline__ float2 unpack_halves(uint32_t word) { return __half22float2(reinterpret_cast<const half2&>(word)); }
__device__ __forceinline__ float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
  return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}
__device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}

template <int e>
__device__ __forceinline__ float largest(const Accumulator& scores) {
  float max = scores[0][e];
#pragma unroll
  for (int j = 0; j < 8; ++j) max = fmaxf(max, fmaxf(scores[j][e], scores[j][e + 1]));
  return max;
}

// A Row is what is known of a query row: the largest of its scores, in powers of
// two, and the sum of its exponentials.
struct Row {
  float max, sum;
};

// Two rows in 16 bytes.
__device__ __forceinline__ uint4 pack_rows(Row upper, Row lower) {
  return {__float_as_uint(upper.max), __float_as_uint(upper.sum), __float_as_uint(lower.max), __float_as_uint(lower.sum)};
}
__device__ __forceinline__ Row upper_of(uint4 w) { return {__uint_as_float(w.x), __uint_as_float(w.y)}; }
__device__ __forceinline__ Row lower_of(uint4 w) { return {__uint_as_float(w.z), __uint_as_float(w.w)}; }

// Four words of FP16: two groups of columns, upper and lower row, scaled.
__device__ __forceinline__ uint4 pack_vector(const float (&x)[4], const float (&y)[4], float upper, float lower) {
  return {pack(x[0] * upper, x[1] * upper), pack(x[2] * lower, x[3] * lower), pack(y[0] * upper, y[1] * upper),
          pack(y[2] * lower, y[3] * lower)};
}
// d += weight · words, for upper and lower row.
__device__ __forceinline__ void add_words(float (&d)[4], uint32_t upper_word, uint32_t lower_word, float upper, float lower) {
  const float2 u = unpack_halves(upper_word), l = unpack_halves(lower_word);
  d[0] = fmaf(u.x, upper, d[0]);
  d[1] = fmaf(u.y, upper, d[1]);
  d[2] = fmaf(l.x, lower, d[2]);
  d[3] = fmaf(l.y, lower, d[3]);
}

}  // namespace

// Grid: (length / 64 · cluster, heads). scale is log2(e)/√D.
extern "C" __global__ void __cluster_dims__(kCluster, 1, 1) __launch_bounds__(kThreads, 1)
    attn_r13_wgmma_cluster(const __grid_constant__ CUtensorMap q_map, const __grid_constant__ CUtensorMap k_map,
                           const __grid_constant__ CUtensorMap v_map, half* __restrict__ o, float scale) {
  extern __shared__ unsigned char memory[];
  const uint32_t base = (static_cast<uint32_t>(__cvta_generic_to_shared(memory)) + 1023) & ~1023u;
  const int rank = kCluster == 1 ? 0 : blockIdx.x % kCluster;  // its share of the keys
  const int first_row = blockIdx.y * kKeys + blockIdx.x / kCluster * kTile;
  const int first_key = blockIdx.y * kKeys + rank * kTiles * kTile;
  // By a shuffle, so that the compiler knows them for the same in all lanes.
  const int number = __shfl_sync(~0u, threadIdx.x >> 5, 0), group = number >> 2, warp = number & 3;
  const int lane = threadIdx.x & 31;
  const auto barrier = [&](int i) { return base + kBarriers + 8 * i; };

#ifdef PROGRAMMATIC
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif

  // Each warp sets up the barrier of one tile and asks for it, so that no thread
  // does it all; V waits until Q and K have been asked for.
  const uint32_t own_barrier = barrier(1 + number), own_tile = base + kK + number * kTileBytes;
  if (lane == 0) {
    if (number < 2 * kTiles) init_barrier(own_barrier, 1);
    if (number == 0) init_barrier(barrier(0), 1);
    if (number == kTiles) {
      init_barrier(barrier(kMergeBarrier), 1);
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
      prefetch_map(&v_map);
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#ifdef PROGRAMMATIC
    asm volatile("griddepcontrol.wait;" ::: "memory");  // what ran before has ended, and its results are here
#endif
    if (number == kTiles) expect_bytes(barrier(kMergeBarrier), kRemoteBytes);
    if (number == 0) {
      expect_bytes(barrier(0), kTileBytes);
      load_tile(base + kQ, &q_map, first_row, barrier(0));
    }
    if (number < 2 * kTiles) expect_bytes(own_barrier, kTileBytes);
    if (number < kTiles) load_tile(own_tile, &k_map, first_key + number * kTile, own_barrier);
  }
  __syncthreads();
  if (lane == 0 && number >= kTiles && number < 2 * kTiles)
    load_tile(own_tile, &v_map, first_key + (number - kTiles) * kTile, own_barrier);
  __syncwarp();
  if (kCluster > 1) cluster_arrive();

  // Scores of this warpgroup's keys.
  Accumulator scores[kSubtiles], out;
  const uint64_t q = tile_descriptor(base + kQ);
  wait(barrier(0));
#pragma unroll
  for (int t = 0; t < kSubtiles; ++t) {
    const int tile = group * kSubtiles + t;
    const uint64_t k = tile_descriptor(base + kK + tile * kTileBytes);
    wait(barrier(1 + tile));
    mma_fence();
#pragma unroll
    for (int step = 0; step < 4; ++step) mma_shared(scores[t], q + 2 * step, k + 2 * step, step > 0);
    mma_commit();
  }
  Row upper, lower;
#pragma unroll
  for (int t = 0; t < kSubtiles; ++t) {
    if (t < kSubtiles - 1) mma_wait<kSubtiles - 1>(scores[t]);
    else mma_wait<0>(scores[t]);
    const float u = largest<0>(scores[t]), l = largest<2>(scores[t]);
    upper.max = t == 0 ? u : fmaxf(upper.max, u);
    lower.max = t == 0 ? l : fmaxf(lower.max, l);
  }
  upper = {quad_max(upper.max) * scale, 0.f};
  lower = {quad_max(lower.max) * scale, 0.f};

  // Exponentials of a tile, packed for the tensor cores. The product of each 16
  // keys with V runs under the exponentials of the next ones.
#pragma unroll
  for (int t = 0; t < kSubtiles; ++t) {
    const int tile = group * kSubtiles + t;
    const uint64_t v = tile_descriptor(base + kV + tile * kTileBytes);
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      uint32_t p[4];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float(&s)[4] = scores[t][2 * step + i];
        const float a = exp2_fast(fmaf(s[0], scale, -upper.max)), b = exp2_fast(fmaf(s[1], scale, -upper.max));
        const float c = exp2_fast(fmaf(s[2], scale, -lower.max)), x = fmaf(s[3], scale, -lower.max);
        const float d = i == 1 ? exp2_polynomial(x) : exp2_fast(x);  // one in eight leaves the unit for exponentials
        upper.sum += a + b;
        lower.sum += c + d;
        p[2 * i] = pack(a, b);
        p[2 * i + 1] = pack(c, d);
      }
      if (step == 0) wait(barrier(1 + kTiles + tile));
      mma_fence();
      mma_registers(out, p, v + step * (2048 >> 4), t + step > 0);
      mma_commit();
    }
  }

  // Each block finishes half of the rows. Every warp hands its part over, divided
  // by its own sums so that FP16 has the range for it.
  const auto exchange = [&](int partial, int owned, int slice, int i) {
    return base + kExchange + ((((partial * kOwned + owned) * kSlices + slice) * kVectors + i) * 32 + lane) * 16;
  };
  const auto statistics = [&](int partial, int owned) {
    return base + kStatistics + ((partial * kOwned + owned) * 8 + lane / 4) * 16;
  };
  const int owner = warp / kOwned, partial = rank * kWarpgroups + group;
  const auto hand_over = [&](uint32_t at, uint4 w) {
    if (owner == rank) store_vector(at, w);
    else send_vector(address_in(at, owner), w, address_in(barrier(kMergeBarrier), owner));
  };
  upper.sum = quad_sum(upper.sum);
  lower.sum = quad_sum(lower.sum);
  if (kCluster > 1) cluster_wait();  // the other block's barrier is set up
  if (lane % 4 == 0) hand_over(statistics(partial, warp % kOwned), pack_rows(upper, lower));
  const float upper_share = 1.f / upper.sum, lower_share = 1.f / lower.sum;
  mma_wait<0>(out);
#pragma unroll
  for (int i = 0; i < 4; ++i)
    hand_over(exchange(partial, warp % kOwned, i / kVectors, i % kVectors),
              pack_vector(out[2 * i], out[2 * i + 1], upper_share, lower_share));
  __syncthreads();
  if (kCluster > 1) wait(barrier(kMergeBarrier));

  // Every warp finishes a slice of the columns of 16 rows.
  const int owned = number / kSlices, slice = number % kSlices;
  Row u[kPartials], l[kPartials];
  float upper_max = -INFINITY, lower_max = -INFINITY;
#pragma unroll
  for (int p = 0; p < kPartials; ++p) {
    const uint4 w = load_vector(statistics(p, owned));
    u[p] = upper_of(w);
    l[p] = lower_of(w);
    upper_max = fmaxf(upper_max, u[p].max);
    lower_max = fmaxf(lower_max, l[p].max);
  }
  float upper_sum = 0.f, lower_sum = 0.f, result[2 * kVectors][4] = {};
#pragma unroll
  for (int p = 0; p < kPartials; ++p) {
    const float a = u[p].sum * exp2_fast(u[p].max - upper_max), b = l[p].sum * exp2_fast(l[p].max - lower_max);
    upper_sum += a;
    lower_sum += b;
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      const uint4 w = load_vector(exchange(p, owned, slice, i));
      add_words(result[2 * i], w.x, w.y, a, b);
      add_words(result[2 * i + 1], w.z, w.w, a, b);
    }
  }
  const float upper_scale = 1.f / upper_sum, lower_scale = 1.f / lower_sum;
  half* row = o + static_cast<size_t>(first_row + (rank * kOwned + owned) * 16 + lane / 4) * kHeadDim + slice * kVectors * 16 + lane % 4 * 2;
#pragma unroll
  for (int j = 0; j < 2 * kVectors; ++j) {
    *reinterpret_cast<uint32_t*>(row + 8 * j) = pack(result[j][0] * upper_scale, result[j][1] * upper_scale);
    *reinterpret_cast<uint32_t*>(row + 8 * kHeadDim + 8 * j) = pack(result[j][2] * lower_scale, result[j][3] * lower_scale);
  }
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
    return error == cudaSuccess && result == cudaDriverEntryPointSuccess
               ? reinterpret_cast<Encode>(entry)
               : nullptr;
  }();
  return function;
}

// Describes an array of rows of 128 bytes, to be copied 64 at a time.
bool describe(CUtensorMap* map, const half* data, int64_t rows) {
  const cuuint64_t dims[2] = {kHeadDim, static_cast<cuuint64_t>(rows)}, strides[1] = {kHeadDim * 2};
  const cuuint32_t box[2] = {kHeadDim, kTile}, steps[2] = {1, 1};
  const auto encode = encoder();
  return encode != nullptr &&
         encode(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, const_cast<half*>(data), dims, strides, box, steps,
                CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

}  // namespace

extern "C" int gate_prepare(const gate_call*) {
  return cudaFuncSetAttribute(attn_r13_wgmma_cluster, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
}

extern "C" int gate_run(const gate_call* call, cudaStream_t stream) {
  AttentionCall c;
  if (!unpack(call, &c) || c.length != kKeys) return GATE_UNSUPPORTED;
  CUtensorMap q, k, v;
  const int64_t rows = int64_t{c.heads} * c.length;
  if (!describe(&q, c.q, rows) || !describe(&k, c.k, rows) || !describe(&v, c.v, rows)) return cudaErrorInvalidValue;
  const dim3 grid(c.length / kTile * kCluster, c.heads);
#ifdef PROGRAMMATIC  // it may begin while what is before it on the stream ends
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  const cudaLaunchConfig_t config{grid, dim3(kThreads), kSharedBytes, stream, &attribute, 1};
  return cudaLaunchKernelEx(&config, attn_r13_wgmma_cluster, q, k, v, c.o, kScale * kLog2e);
#else
  attn_r13_wgmma_cluster<<<grid, kThreads, kSharedBytes, stream>>>(q, k, v, c.o, kScale * kLog2e);
  return cudaGetLastError();
#endif
}
