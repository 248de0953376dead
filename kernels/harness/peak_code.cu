#include "peak_code.h"

#include "launch.h"

namespace {

// Blocks of four warps, two on a multiprocessor: enough for multiplications that do
// not wait for each other. Memory takes more.
constexpr unsigned kWarps = 4, kWorkThreads = 32 * kWarps, kWorkBlocks = 2;
constexpr unsigned kTrafficThreads = 512, kTrafficBlocks = 4;
constexpr int kAtOnce = 4;  // loads of a thread that do not wait for each other

// Loads pass by the L1, which would hold what a pass before this one has read.
__device__ uint4 load(const uint4* at) {
#ifdef __CUDACC__
  return __ldcg(at);
#else
  if (reinterpret_cast<uintptr_t>(at) % 128 == 0) standin::touch(at);
  return *at;
#endif
}

__device__ void store(uint4* at, uint4 value) {
#ifdef __CUDACC__
  __stcg(at, value);
#else
  if (reinterpret_cast<uintptr_t>(at) % 128 == 0) standin::touch(at);
  *at = value;
#endif
}

template <Traffic traffic>
__global__ void move_bytes(uint4* at, size_t words, int passes, uint32_t* sink) {
  const size_t first = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x, stride = static_cast<size_t>(gridDim.x) * blockDim.x;
  uint32_t sum = 0;
  for (int pass = 0; pass < passes; ++pass) {
    for (size_t i = first; i < words; i += kAtOnce * stride) {
      uint4 values[kAtOnce];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const size_t from = i + static_cast<size_t>(k) * stride;
        values[k] = traffic != Traffic::write && from < words ? load(at + from) : uint4{sum, 0, 0, 0};
      }
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const size_t to = i + static_cast<size_t>(k) * stride;
        if (traffic == Traffic::read) sum ^= values[k].x ^ values[k].y ^ values[k].z ^ values[k].w;
        else if (to < words) store(at + (traffic == Traffic::copy ? words : 0) + to, values[k]);
      }
    }
  }
  if (sum == 0x5eed5eedu) *sink = sum;
}

// A Chain is what one block does of a way. Its operations are those of a round, of all
// warps of the block; none where the code is built for an architecture on which the
// way is not there, or is not known to reach the peak.
template <Way way>
struct Chain {
  static constexpr unsigned long long kOperations = 0;
  __device__ explicit Chain(uint32_t) {}
  __device__ void round() {}
  __device__ uint32_t result() const { return 0; }
};

// Sums that do not wait for each other, and additions to each of them in a round.
constexpr int kSums = 16, kSteps = 16;

template <class T>
struct Plain {
  static constexpr unsigned long long kOperations = 2ull * kSums * kSteps * kWorkThreads;
  T sums[kSums], factor, addend;

  __device__ explicit Plain(uint32_t zero) : factor(static_cast<T>(zero)), addend(static_cast<T>(zero)) {
    for (T& sum : sums) sum = static_cast<T>(zero);
  }
  __device__ void round() {
#ifndef __CUDACC__
    standin::spend(10);
#endif
#pragma unroll
    for (int step = 0; step < kSteps; ++step)
#pragma unroll
      for (int i = 0; i < kSums; ++i) sums[i] = sums[i] * factor + addend;
  }
  __device__ uint32_t result() const {
    T all = 0;
    for (const T sum : sums) all += sum;
    return static_cast<uint32_t>(all);
  }
};

template <>
struct Chain<Way::f32_plain> : Plain<float> {
  using Plain::Plain;
};
template <>
struct Chain<Way::f64_plain> : Plain<double> {
  using Plain::Plain;
};

#ifdef __CUDA_ARCH__

constexpr int kTiles = 8;  // of a warp, which do not wait for each other

// GATE_MMA is a way by an instruction that a warp does on registers: tiles of
// M × N numbers, of which a thread has D registers, in each of which K products are
// added up.
#define GATE_MMA(WAY, M, N, K, INSTRUCTION, NUMBER, LETTER, D, FACTOR, A, B, OPERANDS, A_LIST, B_LIST)        \
  template <>                                                                                                 \
  struct Chain<WAY> {                                                                                         \
    static constexpr unsigned long long kOperations = 2ull * M * N * K * kTiles * kWarps;                     \
    NUMBER d[kTiles][D];                                                                                      \
    FACTOR a[A], b[B];                                                                                        \
    __device__ explicit Chain(uint32_t zero) {                                                                \
      for (FACTOR & x : a) x = static_cast<FACTOR>(zero);                                                     \
      for (FACTOR & x : b) x = static_cast<FACTOR>(zero);                                                     \
      for (auto& tile : d)                                                                                    \
        for (NUMBER & x : tile) x = static_cast<NUMBER>(zero);                                                \
    }                                                                                                         \
    __device__ void round() {                                                                                 \
      _Pragma("unroll") for (auto& t : d) asm volatile("mma.sync.aligned." INSTRUCTION " " OPERANDS : GATE_D##D(LETTER) : A_LIST, B_LIST); \
    }                                                                                                         \
    __device__ uint32_t result() const {                                                                      \
      NUMBER all = 0;                                                                                         \
      for (const auto& tile : d)                                                                              \
        for (const NUMBER x : tile) all += x;                                                                 \
      return static_cast<uint32_t>(all);                                                                      \
    }                                                                                                         \
  };
#define GATE_D2(LETTER) "+" LETTER(t[0]), "+" LETTER(t[1])
#define GATE_D4(LETTER) "+" LETTER(t[0]), "+" LETTER(t[1]), "+" LETTER(t[2]), "+" LETTER(t[3])

// The usual instruction: four registers of one factor and two of the other.
#define GATE_A4 "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3])
#define GATE_B2 "r"(b[0]), "r"(b[1])
#define GATE_MMA4(WAY, K, INSTRUCTION, NUMBER, LETTER) \
  GATE_MMA(WAY, 16, 8, K, INSTRUCTION, NUMBER, LETTER, 4, uint32_t, 4, 2, "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};", GATE_A4, GATE_B2)
#define GATE_MMA2(WAY, K, INSTRUCTION) \
  GATE_MMA(WAY, 16, 8, K, INSTRUCTION, uint32_t, "r", 2, uint32_t, 4, 2, "{%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};", GATE_A4, GATE_B2)

#if __CUDA_ARCH__ >= 800
GATE_MMA(Way::f64_matrix, 8, 8, 4, "m8n8k4.row.col.f64.f64.f64.f64", double, "d", 2, double, 1, 1, "{%0, %1}, {%2}, {%3}, {%0, %1};", "d"(a[0]), "d"(b[0]))
#endif
#if __CUDA_ARCH__ >= 900
#define GATE_A8 "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]), "d"(a[7])
#define GATE_B4 "d"(b[0]), "d"(b[1]), "d"(b[2]), "d"(b[3])
GATE_MMA(Way::f64_wide_matrix, 16, 8, 16, "m16n8k16.row.col.f64.f64.f64.f64", double, "d", 4, double, 8, 4,
         "{%0, %1, %2, %3}, {%4, %5, %6, %7, %8, %9, %10, %11}, {%12, %13, %14, %15}, {%0, %1, %2, %3};", GATE_A8, GATE_B4)
#endif

#if __CUDA_ARCH__ >= 1000
// Two numbers of 32 bits in one instruction.
template <>
struct Chain<Way::f32_pairs> {
  static constexpr unsigned long long kOperations = 2ull * 2 * kSums * kSteps * kWorkThreads;
  uint64_t sums[kSums], factor;
  __device__ explicit Chain(uint32_t zero) : factor(zero) {
    for (uint64_t& sum : sums) sum = zero;
  }
  __device__ void round() {
#pragma unroll
    for (int step = 0; step < kSteps; ++step)
#pragma unroll
      for (int i = 0; i < kSums; ++i) asm volatile("fma.rn.f32x2 %0, %0, %1, %1;" : "+l"(sums[i]) : "l"(factor));
  }
  __device__ uint32_t result() const {
    uint64_t all = 0;
    for (const uint64_t sum : sums) all += sum;
    return static_cast<uint32_t>(all);
  }
};
#endif

// Tensor cores by mma.sync, on all architectures where that reaches their peak: not on
// 9.0, where it takes wgmma, and not on 10.0 to 11.0, where it takes tcgen05.
#if __CUDA_ARCH__ >= 800 && __CUDA_ARCH__ < 900 || __CUDA_ARCH__ >= 1200 && __CUDA_ARCH__ < 1300
GATE_MMA4(Way::tf32, 8, "m16n8k8.row.col.f32.tf32.tf32.f32", float, "f")
GATE_MMA4(Way::f16_to_f32, 16, "m16n8k16.row.col.f32.f16.f16.f32", float, "f")
GATE_MMA2(Way::f16_to_f16, 16, "m16n8k16.row.col.f16.f16.f16.f16")
GATE_MMA4(Way::bf16, 16, "m16n8k16.row.col.f32.bf16.bf16.f32", float, "f")
GATE_MMA4(Way::i8, 32, "m16n8k32.row.col.s32.s8.s8.s32", int32_t, "r")
#if __CUDA_ARCH__ >= 890
GATE_MMA4(Way::f8_to_f32, 32, "m16n8k32.row.col.f32.e4m3.e4m3.f32", float, "f")
GATE_MMA2(Way::f8_to_f16, 32, "m16n8k32.row.col.f16.e4m3.e4m3.f16")
#endif
#elif __CUDA_ARCH__ == 750
#define GATE_A2 "r"(a[0]), "r"(a[1])
GATE_MMA(Way::f16_to_f32, 16, 8, 8, "m16n8k8.row.col.f32.f16.f16.f32", float, "f", 4, uint32_t, 2, 1, "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};",
         GATE_A2, "r"(b[0]))
GATE_MMA(Way::f16_to_f16, 16, 8, 8, "m16n8k8.row.col.f16.f16.f16.f16", uint32_t, "r", 2, uint32_t, 2, 1, "{%0, %1}, {%2, %3}, {%4}, {%0, %1};", GATE_A2,
         "r"(b[0]))
GATE_MMA(Way::i8, 8, 8, 16, "m8n8k16.row.col.s32.s8.s8.s32", int32_t, "r", 2, uint32_t, 1, 1, "{%0, %1}, {%2}, {%3}, {%0, %1};", "r"(a[0]), "r"(b[0]))
#endif

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// A warp group of four warps multiplies tiles that lie in shared memory, 64 × K by
// K × 256. A row of a tile has 128 bytes, which are the K of four instructions; eight
// rows are swizzled together, which is what the addresses say: the distance of eight
// rows (1024 bytes) from bit 32 on and the swizzle of 128 bytes from bit 62 on, all in
// units of 16 bytes.
constexpr unsigned kTileA = 64 * 128, kTileB = 256 * 128;
constexpr int kGroup = 16;  // instructions that are waited for together

__device__ uint64_t tile_at(const unsigned char* tile) {
  const uint64_t address = __cvta_generic_to_shared(tile);
  return (address >> 4 & 0x3fff) | uint64_t{1} << 16 | uint64_t{1024 >> 4} << 32 | uint64_t{1} << 62;
}

#define GATE_REGISTERS \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, " \
  "%25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, " \
  "%71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, " \
  "%94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, " \
  "%114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"

#define GATE_OUT8(LETTER, i) \
  "+" LETTER(d[i]), "+" LETTER(d[i + 1]), "+" LETTER(d[i + 2]), "+" LETTER(d[i + 3]), "+" LETTER(d[i + 4]), "+" LETTER(d[i + 5]), "+" LETTER(d[i + 6]), "+" LETTER(d[i + 7])
#define GATE_OUT32(LETTER, i) GATE_OUT8(LETTER, i), GATE_OUT8(LETTER, i + 8), GATE_OUT8(LETTER, i + 16), GATE_OUT8(LETTER, i + 24)
#define GATE_OUT128(LETTER) GATE_OUT32(LETTER, 0), GATE_OUT32(LETTER, 32), GATE_OUT32(LETTER, 64), GATE_OUT32(LETTER, 96)

template <class Number>
struct Tiles {
  Number d[128];
  uint64_t a, b;

  __device__ explicit Tiles(uint32_t zero) {
    __shared__ alignas(1024) unsigned char tiles[kTileA + kTileB];
    for (unsigned i = threadIdx.x; i < sizeof tiles / 4; i += blockDim.x) reinterpret_cast<uint32_t*>(tiles)[i] = zero;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // the tensor cores read by another way than the stores
    __syncthreads();
    a = tile_at(tiles);
    b = tile_at(tiles + kTileA);
    for (Number& x : d) x = static_cast<Number>(zero);
  }
  __device__ uint32_t result() const {
    Number all = 0;
    for (const Number x : d) all += x;
    return static_cast<uint32_t>(all);
  }
};

#define GATE_WGMMA(WAY, K, TYPES, NUMBER, LETTER, SCALES)                                                                            \
  template <>                                                                                                                        \
  struct Chain<WAY> : Tiles<NUMBER> {                                                                                                \
    static constexpr unsigned long long kOperations = 2ull * 64 * 256 * K * kGroup;                                                  \
    using Tiles::Tiles;                                                                                                              \
    __device__ void round() {                                                                                                        \
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");                                                                        \
      _Pragma("unroll") for (int i = 0; i < kGroup; ++i) {                                                                           \
        const uint64_t step = static_cast<uint64_t>(i % 4) * 2;                                                                      \
        asm volatile("{.reg .pred add; setp.ne.b32 add, %130, 0; wgmma.mma_async.sync.aligned.m64n256k" #K "." TYPES                 \
                     " {" GATE_REGISTERS "}, %128, %129, add" SCALES ";}"                                                            \
                     : GATE_OUT128(LETTER)                                                                                           \
                     : "l"(a + step), "l"(b + step), "r"(1));                                                                        \
      }                                                                                                                              \
      asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");                                                                 \
      asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");                                                                 \
    }                                                                                                                                \
  };

GATE_WGMMA(Way::tf32, 8, "f32.tf32.tf32", float, "f", ", 1, 1")
GATE_WGMMA(Way::f16_to_f32, 16, "f32.f16.f16", float, "f", ", 1, 1, 0, 0")
GATE_WGMMA(Way::bf16, 16, "f32.bf16.bf16", float, "f", ", 1, 1, 0, 0")
GATE_WGMMA(Way::f8_to_f32, 32, "f32.e4m3.e4m3", float, "f", ", 1, 1")
GATE_WGMMA(Way::i8, 32, "s32.s8.s8", int32_t, "r", "")

#endif  // __CUDA_ARCH_FEAT_SM90_ALL
#endif  // __CUDA_ARCH__

template <Way way>
__global__ void work(unsigned rounds, uint32_t zero, unsigned long long* operations, uint32_t* sink) {
  if (blockIdx.x == 0 && threadIdx.x == 0) *operations = Chain<way>::kOperations * rounds * gridDim.x;
  if (Chain<way>::kOperations == 0) return;
  Chain<way> chain(zero);
  for (unsigned i = 0; i < rounds; ++i) chain.round();
  if (chain.result() == 0x5eed5eedu) *sink = rounds;
}

}  // namespace

cudaError_t enqueue_traffic(Traffic traffic, unsigned char* at, size_t bytes, int passes, int multiprocessors, uint32_t* sink, cudaStream_t stream) {
  uint4* words = reinterpret_cast<uint4*>(at);
  const size_t count = bytes / sizeof(uint4);
  const unsigned blocks = kTrafficBlocks * static_cast<unsigned>(multiprocessors);
  switch (traffic) {
    case Traffic::read: return launch(move_bytes<Traffic::read>, blocks, kTrafficThreads, 0, stream, words, count, passes, sink);
    case Traffic::write: return launch(move_bytes<Traffic::write>, blocks, kTrafficThreads, 0, stream, words, count, passes, sink);
    case Traffic::copy: return launch(move_bytes<Traffic::copy>, blocks, kTrafficThreads, 0, stream, words, count / 2, passes, sink);
  }
  return cudaErrorInvalidValue;
}

const std::vector<Unit>& units() {
  static const std::vector<Unit> all = {
      {"f64", {Way::f64_plain, Way::f64_matrix, Way::f64_wide_matrix}},
      {"f32", {Way::f32_plain, Way::f32_pairs}},
      {"tf32", {Way::tf32}},
      {"f16", {Way::f16_to_f32, Way::f16_to_f16}},
      {"bf16", {Way::bf16}},
      {"f8", {Way::f8_to_f32, Way::f8_to_f16}},
      {"i8", {Way::i8}},
  };
  return all;
}

cudaError_t enqueue_work(Way way, unsigned rounds, int multiprocessors, unsigned long long* operations, uint32_t* sink, cudaStream_t stream) {
  const auto enqueue = [&](void (*kernel)(unsigned, uint32_t, unsigned long long*, uint32_t*)) {
    return launch(kernel, kWorkBlocks * static_cast<unsigned>(multiprocessors), kWorkThreads, 0, stream, rounds, 0u, operations, sink);
  };
  switch (way) {
    case Way::f64_plain: return enqueue(work<Way::f64_plain>);
    case Way::f64_matrix: return enqueue(work<Way::f64_matrix>);
    case Way::f64_wide_matrix: return enqueue(work<Way::f64_wide_matrix>);
    case Way::f32_plain: return enqueue(work<Way::f32_plain>);
    case Way::f32_pairs: return enqueue(work<Way::f32_pairs>);
    case Way::tf32: return enqueue(work<Way::tf32>);
    case Way::f16_to_f32: return enqueue(work<Way::f16_to_f32>);
    case Way::f16_to_f16: return enqueue(work<Way::f16_to_f16>);
    case Way::bf16: return enqueue(work<Way::bf16>);
    case Way::f8_to_f32: return enqueue(work<Way::f8_to_f32>);
    case Way::f8_to_f16: return enqueue(work<Way::f8_to_f16>);
    case Way::i8: return enqueue(work<Way::i8>);
  }
  return cudaErrorInvalidValue;
}
