// r12: the keys of a head divided among warps and among the two blocks of a
// cluster, so that 128 blocks work instead of 64, and no warp reads what another
// one reads too. README.md says what it teaches.

#include <cuda_fp16.h>

#include "../attention.h"

namespace {

constexpr int kTile = 64;                       // query rows of a block, keys of a warp
constexpr int kCluster = 2;                     // blocks that share the keys of a head
constexpr int kKeyGroups = 4;                   // of 64 keys
constexpr int kRowGroups = 2;                   // of 32 query rows
constexpr int kThreads = 32 * kKeyGroups * kRowGroups;
constexpr int kKeys = kTile * kKeyGroups;       // of a block
constexpr int kLength = kKeys * kCluster;       // that the kernel takes
constexpr int kRowBytes = kHeadDim * 2;
constexpr int kTileBytes = kTile * kRowBytes;

// Shared memory: Q, K, V; what warps of a block hand to each other; what the other
// block sends: results and, for each row, maximum and sum.
constexpr int kQ = 0;
constexpr int kK = kQ + kTileBytes;
constexpr int kV = kK + kKeyGroups * kTileBytes;
constexpr int kExchange = kV + kKeyGroups * kTileBytes;  // [row group][from][slice][16 rows][lane] of 16 bytes
constexpr int kStatistics = kExchange + kRowGroups * kKeyGroups * kKeyGroups * 2 * 32 * 16;  // [from][row] of 8 bytes
constexpr int kReceived = kStatistics + kKeyGroups * kTile * 8;         // [slice][16 rows][lane] of 16 bytes
constexpr int kReceivedStatistics = kReceived + kKeyGroups * 2 * 32 * 16;  // [row] of 8 bytes
constexpr int kBarrier = kReceivedStatistics + 32 * 8;
constexpr int kSharedBytes = kBarrier + 8;
constexpr int kRemoteBytes = kKeyGroups * 2 * 32 * 16 + 32 * 8;

// Where a 16-byte chunk of a tile lies: the XOR spreads a column of chunks over all banks.
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
// 64 rows of 128 bytes, by `threads` threads of which this is number `thread`.
template <int threads>
__device__ __forceinline__ void copy_tile(uint32_t shared, const half* global, int thread) {
  const int row = thread >> 3, chunk = thread & 7;
#pragma unroll
  for (int i = 0; i < kTile; i += threads / 8)
    copy_async(shared + swizzle(row + i, chunk), global + (row + i) * kHeadDim + chunk * 8);
}

// Waits for the two warps that hold the same keys.
__device__ __forceinline__ void sync_key_group(int group) { asm volatile("bar.sync %0, 64;" ::"r"(group + 1) : "memory"); }

__device__ __forceinline__ void store_vector(uint32_t shared, const uint32_t (&w)[4]) {
  asm volatile("st.shared.v4.b32 [%0], {%1,%2,%3,%4};" ::"r"(shared), "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3]) : "memory");
}
__device__ __forceinline__ void load_vector(uint32_t (&w)[4], uint32_t shared) {
  asm volatile("ld.shared.v4.b32 {%0,%1,%2,%3}, [%4];" : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3]) : "r"(shared) : "memory");
}
// Stores into the other block, counted by a barrier there.
__device__ __forceinline__ void send_vector(uint32_t remote, const uint32_t (&w)[4], uint32_t barrier) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1,%2,%3,%4}, [%5];" ::"r"(remote),
               "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3]), "r"(barrier)
               : "memory");
}
__device__ __forceinline__ uint32_t address_in(uint32_t shared, int rank) {
  uint32_t r;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(shared), "r"(rank));
  return r;
}
__device__ __forceinline__ void wait_for_cluster(uint32_t barrier) {
  asm volatile(
      "{\n.reg .pred done;\n"
      "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;\n"
      "@!done bra again;\n}" ::"r"(barrier)
      : "memory");
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
__device__ __forceinline__ float2 unpack_halves(uint32_t word) { return __half22float2(reinterpret_cast<const half2&>(word)); }
__device__ __forceinline__ float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
  return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}
__device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}

// 32 rows × 64 columns of a warp: two tiles of 16 rows. Of every 8 columns a lane
// has two in row lane / 4 (elements 0, 1) and two in row lane / 4 + 8 (2, 3).
using Accumulator = float[2][8][4];

// Maximum, in powers of two, and sum of the exponentials of a query row.
struct Row {
  float max, sum;
};

__device__ __forceinline__ void multiply_qk(Accumulator& scores, uint32_t q, uint32_t k) {
  const int lane = threadIdx.x & 31;
  const int row = (lane & 7) + ((lane >> 4) << 3), chunk = (lane >> 3) & 1;
#pragma unroll
  for (int step = 0; step < kHeadDim / 16; ++step) {
    uint32_t a[2][4];
#pragma unroll
    for (int m = 0; m < 2; ++m) load_matrices(a[m], q + swizzle(16 * m + (lane & 15), 2 * step + (lane >> 4)));
#pragma unroll
    for (int j = 0; j < 8; j += 2) {
      uint32_t b[4];
      load_matrices(b, k + swizzle(row + 8 * j, chunk + 2 * step));
#pragma unroll
      for (int m = 0; m < 2; ++m) {
        mma(scores[m][j], a[m], b[0], b[1]);
        mma(scores[m][j + 1], a[m], b[2], b[3]);
      }
    }
  }
}

__device__ __forceinline__ void multiply_pv(Accumulator& out, const Accumulator& p, uint32_t v) {
  const int lane = threadIdx.x & 31;
  const int row = lane & 15, chunk = lane >> 4;
#pragma unroll
  for (int step = 0; step < kTile / 16; ++step) {
    uint32_t a[2][4];
#pragma unroll
    for (int m = 0; m < 2; ++m) {
      const float(&lo)[4] = p[m][2 * step];
      const float(&hi)[4] = p[m][2 * step + 1];
      a[m][0] = pack(lo[0], lo[1]), a[m][1] = pack(lo[2], lo[3]);
      a[m][2] = pack(hi[0], hi[1]), a[m][3] = pack(hi[2], hi[3]);
    }
#pragma unroll
    for (int j = 0; j < 8; j += 2) {
      uint32_t b[4];
      load_matrices_transposed(b, v + swizzle(row + 16 * step, chunk + j));
#pragma unroll
      for (int m = 0; m < 2; ++m) {
        mma(out[m][j], a[m], b[0], b[1]);
        mma(out[m][j + 1], a[m], b[2], b[3]);
      }
    }
  }
}

// A warp sees each of its keys once: one maximum, one sum, nothing to rescale.
template <int e>
__device__ __forceinline__ Row softmax(float (&scores)[8][4], float scale) {
  float max = scores[0][e];
#pragma unroll
  for (int j = 0; j < 8; ++j) max = fmaxf(max, fmaxf(scores[j][e], scores[j][e + 1]));
  Row row{quad_max(max) * scale, 0.f};
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    scores[j][e] = exp2_fast(fmaf(scores[j][e], scale, -row.max));
    scores[j][e + 1] = exp2_fast(fmaf(scores[j][e + 1], scale, -row.max));
    row.sum += scores[j][e] + scores[j][e + 1];
  }
  row.sum = quad_sum(row.sum);
  return row;
}

__device__ __forceinline__ void store_row(uint32_t shared, Row row) {
  asm volatile("st.shared.v2.f32 [%0], {%1,%2};" ::"r"(shared), "f"(row.max), "f"(row.sum) : "memory");
}
__device__ __forceinline__ Row load_row(uint32_t shared) {
  Row row;
  asm volatile("ld.shared.v2.f32 {%0,%1}, [%2];" : "=f"(row.max), "=f"(row.sum) : "r"(shared) : "memory");
  return row;
}

}  // namespace

// Grid: (length / 64 · 2, heads). scale is log2(e)/√D.
extern "C" __global__ void __cluster_dims__(kCluster, 1, 1) __launch_bounds__(kThreads, 1)
    attn_r12_mma_cluster(const half* __restrict__ q, const half* __restrict__ k, const half* __restrict__ v,
                         half* __restrict__ o, float scale) {
  extern __shared__ __align__(128) unsigned char memory[];
  const uint32_t base = static_cast<uint32_t>(__cvta_generic_to_shared(memory));
  const int rank = blockIdx.x % kCluster, warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  const int group = warp / kRowGroups, half_of_rows = warp % kRowGroups;  // of the keys, of the rows
  const size_t head = static_cast<size_t>(blockIdx.y) * kLength * kHeadDim;
  const size_t first_row = head + static_cast<size_t>(blockIdx.x / kCluster) * kTile * kHeadDim;
  const size_t first_key = head + static_cast<size_t>(rank * kKeys + group * kTile) * kHeadDim;
  const uint32_t k_tile = base + kK + group * kTileBytes, v_tile = base + kV + group * kTileBytes;

  copy_tile<kThreads>(base + kQ, q + first_row, threadIdx.x);
  copy_tile<64>(k_tile, k + first_key, threadIdx.x & 63);
  commit_copies();
  copy_tile<64>(v_tile, v + first_key, threadIdx.x & 63);
  commit_copies();
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(base + kBarrier) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(base + kBarrier), "n"(kRemoteBytes) : "memory");
  }
  wait_for_copies<1>();
  __syncthreads();
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");

  Accumulator scores = {}, out = {};
  multiply_qk(scores, base + kQ + half_of_rows * 32 * kRowBytes, k_tile);
  Row upper[2], lower[2];
#pragma unroll
  for (int m = 0; m < 2; ++m) {
    upper[m] = softmax<0>(scores[m], scale);
    lower[m] = softmax<2>(scores[m], scale);
  }
  wait_for_copies<0>();
  sync_key_group(group);
  multiply_pv(out, scores, v_tile);

  // Within the block: the warp of key group g finishes columns 16 g to 16 g + 15 of
  // its rows, and gets them from the other key groups, divided by their sums.
  const auto exchange = [&](int from, int slice, int m) {
    return base + kExchange + ((((half_of_rows * kKeyGroups + from) * kKeyGroups + slice) * 2 + m) * 32 + lane) * 16;
  };
  const auto statistics = [&](int from, int m) {
    return base + kStatistics + (from * kTile + half_of_rows * 32 + m * 16 + lane / 4) * 8;
  };
#pragma unroll
  for (int m = 0; m < 2; ++m) {
    if (lane % 4 == 0) {
      store_row(statistics(group, m), upper[m]);
      store_row(statistics(group, m) + 64, lower[m]);
    }
    const float u = 1.f / upper[m].sum, l = 1.f / lower[m].sum;
#pragma unroll
    for (int slice = 0; slice < kKeyGroups; ++slice) {
      const float(&x)[4] = out[m][2 * slice];
      const float(&y)[4] = out[m][2 * slice + 1];
      const uint32_t w[4] = {pack(x[0] * u, x[1] * u), pack(x[2] * l, x[3] * l), pack(y[0] * u, y[1] * u), pack(y[2] * l, y[3] * l)};
      store_vector(exchange(group, slice, m), w);
    }
  }
  __syncthreads();

  float result[2][2][4];
#pragma unroll
  for (int m = 0; m < 2; ++m) {
    Row u[kKeyGroups], l[kKeyGroups];
    upper[m].max = lower[m].max = -INFINITY;
    upper[m].sum = lower[m].sum = 0.f;
#pragma unroll
    for (int g = 0; g < kKeyGroups; ++g) {
      u[g] = load_row(statistics(g, m));
      l[g] = load_row(statistics(g, m) + 64);
      upper[m].max = fmaxf(upper[m].max, u[g].max);
      lower[m].max = fmaxf(lower[m].max, l[g].max);
    }
#pragma unroll
    for (int g = 0; g < kKeyGroups; ++g) {
      upper[m].sum += u[g].sum *= exp2_fast(u[g].max - upper[m].max);
      lower[m].sum += l[g].sum *= exp2_fast(l[g].max - lower[m].max);
    }
    const float upper_scale = 1.f / upper[m].sum, lower_scale = 1.f / lower[m].sum;
#pragma unroll
    for (int e = 0; e < 4; ++e) result[m][0][e] = result[m][1][e] = 0.f;
#pragma unroll
    for (int g = 0; g < kKeyGroups; ++g) {
      uint32_t w[4];
      load_vector(w, exchange(g, group, m));
      const float a = u[g].sum * upper_scale, b = l[g].sum * lower_scale;
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const float2 x = unpack_halves(w[2 * j]), y = unpack_halves(w[2 * j + 1]);
        result[m][j][0] += a * x.x, result[m][j][1] += a * x.y;
        result[m][j][2] += b * y.x, result[m][j][3] += b * y.y;
      }
    }
  }

  // Across the cluster: each block finishes 32 of the 64 rows.
  const auto received = [&](int m) { return base + kReceived + ((group * 2 + m) * 32 + lane) * 16; };
  const auto received_statistics = [&](int m) { return base + kReceivedStatistics + (m * 16 + lane / 4) * 8; };
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
  if (half_of_rows != rank) {
    const uint32_t barrier = address_in(base + kBarrier, rank ^ 1);
#pragma unroll
    for (int m = 0; m < 2; ++m) {
      const float(&x)[4] = result[m][0];
      const float(&y)[4] = result[m][1];
      const uint32_t w[4] = {pack(x[0], x[1]), pack(x[2], x[3]), pack(y[0], y[1]), pack(y[2], y[3])};
      send_vector(address_in(received(m), rank ^ 1), w, barrier);
      if (group == 0 && lane % 4 == 0) {
        const uint32_t to = address_in(received_statistics(m), rank ^ 1);
        asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1,%2}, [%3];" ::"r"(to),
                     "f"(upper[m].max), "f"(upper[m].sum), "r"(barrier)
                     : "memory");
        asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1,%2}, [%3];" ::"r"(to + 64),
                     "f"(lower[m].max), "f"(lower[m].sum), "r"(barrier)
                     : "memory");
      }
    }
    return;
  }
  wait_for_cluster(base + kBarrier);
#pragma unroll
  for (int m = 0; m < 2; ++m) {
    const Row u = load_row(received_statistics(m)), l = load_row(received_statistics(m) + 64);
    const float upper_max = fmaxf(upper[m].max, u.max), lower_max = fmaxf(lower[m].max, l.max);
    float mine_upper = upper[m].sum * exp2_fast(upper[m].max - upper_max), other_upper = u.sum * exp2_fast(u.max - upper_max);
    float mine_lower = lower[m].sum * exp2_fast(lower[m].max - lower_max), other_lower = l.sum * exp2_fast(l.max - lower_max);
    const float upper_scale = 1.f / (mine_upper + other_upper), lower_scale = 1.f / (mine_lower + other_lower);
    mine_upper *= upper_scale, other_upper *= upper_scale, mine_lower *= lower_scale, other_lower *= lower_scale;
    uint32_t w[4];
    load_vector(w, received(m));
    half* to = o + first_row + (half_of_rows * 32 + m * 16 + lane / 4) * kHeadDim + group * 16 + lane % 4 * 2;
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const float2 x = unpack_halves(w[2 * j]), y = unpack_halves(w[2 * j + 1]);
      const float(&r)[4] = result[m][j];
      *reinterpret_cast<uint32_t*>(to + 8 * j) = pack(mine_upper * r[0] + other_upper * x.x, mine_upper * r[1] + other_upper * x.y);
      *reinterpret_cast<uint32_t*>(to + 8 * kHeadDim + 8 * j) =
          pack(mine_lower * r[2] + other_lower * y.x, mine_lower * r[3] + other_lower * y.y);
    }
  }
}

extern "C" int gate_prepare(const gate_call*) {
  return cudaFuncSetAttribute(attn_r12_mma_cluster, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
}

extern "C" int gate_run(const gate_call* call, cudaStream_t stream) {
  AttentionCall c;
  if (!unpack(call, &c) || c.length != kLength) return GATE_UNSUPPORTED;
  const dim3 grid(c.length / kTile * kCluster, c.heads);
  attn_r12_mma_cluster<<<grid, kThreads, kSharedBytes, stream>>>(c.q, c.k, c.v, c.o, kScale * kLog2e);
  return cudaGetLastError();
}
