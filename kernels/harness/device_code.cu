#include "device_code.h"

#include "launch.h"

namespace {

constexpr unsigned kThreads = 256, kMostBlocks = 2048;

#ifdef __CUDACC__
__device__ uint64_t nanoseconds() {
  uint64_t ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return ns;
}

__device__ uint32_t multiprocessor() {
  uint32_t id;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
  return id;
}

__device__ void let_dependents_start() {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}
#endif

__host__ __device__ uint32_t mix(uint32_t x) {
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

__host__ __device__ unsigned char pattern_at(Pattern p, size_t i) {
  if (p.seed == 0) return static_cast<unsigned char>(p.byte);
  return static_cast<unsigned char>(mix(p.seed + static_cast<uint32_t>(i)) & 0x3f);
}

__device__ size_t first_index() { return static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ size_t stride() { return static_cast<size_t>(gridDim.x) * blockDim.x; }

__global__ void write_pattern(unsigned char* at, size_t bytes, Pattern pattern) {
  for (size_t i = first_index(); i < bytes; i += stride()) at[i] = pattern_at(pattern, i);
}

__global__ void count_differences(const unsigned char* a, const unsigned char* b, size_t bytes, unsigned long long* count) {
  unsigned long long found = 0;
  const bool wide = (reinterpret_cast<uintptr_t>(a) | reinterpret_cast<uintptr_t>(b)) % 8 == 0;
  const size_t words = wide ? bytes / 8 : 0;
  for (size_t i = first_index(); i < words; i += stride())
    if (reinterpret_cast<const uint64_t*>(a)[i] != reinterpret_cast<const uint64_t*>(b)[i]) ++found;
  for (size_t i = words * 8 + first_index(); i < bytes; i += stride())
    if (a[i] != b[i]) ++found;
  if (found > 0) atomicAdd(count, found);
}

__global__ void count_unlike(const unsigned char* at, size_t bytes, Pattern pattern, unsigned long long* count) {
  unsigned long long found = 0;
  for (size_t i = first_index(); i < bytes; i += stride())
    if (at[i] != pattern_at(pattern, i)) ++found;
  if (found > 0) atomicAdd(count, found);
}

__global__ void slow_copy(const unsigned char* from, unsigned char* to, size_t bytes, uint64_t wait_ns) {
  let_dependents_start();
  for (const uint64_t start = nanoseconds(); nanoseconds() - start < wait_ns;) {
  }
  for (size_t i = first_index(); i < bytes; i += stride()) to[i] = from[i];
}

__device__ uint32_t read_word(const uint32_t* at, size_t i) {
#ifndef __CUDACC__
  if (i % 32 == 0) standin::touch(at + i);
#endif
  return at[i];
}

__global__ void read_memory(const uint32_t* at, size_t words, uint32_t* sink) {
  uint32_t sum = 0;
  for (size_t i = first_index(); i < words; i += stride()) sum ^= read_word(at, i);
  if (sum == 0x5eed5eedu) *sink = sum;
}

__global__ void read_everywhere(const uint32_t* at, size_t words, uint32_t* sink) {
  uint32_t sum = 0;
  for (size_t i = threadIdx.x; i < words; i += blockDim.x) sum ^= read_word(at, i);
  if (sum == 0x5eed5eedu) *sink = sum;
}

constexpr unsigned kDirtyRegisters = 128;

__global__ void dirty(uint32_t seed, size_t shared_words, uint32_t* sink) {
#ifdef __CUDACC__
  extern __shared__ uint32_t shared[];
  for (size_t i = threadIdx.x; i < shared_words; i += blockDim.x) shared[i] = mix(seed + static_cast<uint32_t>(i)) | 0x7fc00000u;
#endif
  uint32_t registers[kDirtyRegisters];
#pragma unroll
  for (unsigned i = 0; i < kDirtyRegisters; ++i) registers[i] = mix(seed ^ (threadIdx.x * kDirtyRegisters + i)) | 0x7fc00000u;
  uint32_t sum = 0;
#pragma unroll
  for (unsigned i = 0; i < kDirtyRegisters; ++i) sum = sum * 31 + registers[i];
  if (sum == 0x5eed5eedu && shared_words > 0) *sink = sum;
}

__global__ void busy(uint64_t ns, uint32_t* sink) {
  uint32_t x = threadIdx.x;
  for (const uint64_t start = nanoseconds(); nanoseconds() - start < ns;) x = mix(x);
  if (x == 0x5eed5eedu) *sink = x;
}

__global__ void stamp(Stamp* at) {
  at->cycles = static_cast<uint64_t>(clock64());
  at->ns = nanoseconds();
  at->multiprocessor = multiprocessor();
}

unsigned blocks_for(size_t items) {
  const size_t blocks = (items + kThreads - 1) / kThreads;
  return blocks < 1 ? 1 : blocks > kMostBlocks ? kMostBlocks : static_cast<unsigned>(blocks);
}

}  // namespace

unsigned char pattern_byte(Pattern pattern, size_t i) { return pattern_at(pattern, i); }

cudaError_t enqueue_pattern(unsigned char* at, size_t bytes, Pattern pattern, cudaStream_t stream) {
  return launch(write_pattern, blocks_for(bytes / 4), kThreads, 0, stream, at, bytes, pattern);
}

cudaError_t enqueue_count_differences(const unsigned char* a, const unsigned char* b, size_t bytes, unsigned long long* count,
                                      cudaStream_t stream) {
  return launch(count_differences, blocks_for(bytes / 8), kThreads, 0, stream, a, b, bytes, count);
}

cudaError_t enqueue_count_unlike(const unsigned char* at, size_t bytes, Pattern pattern, unsigned long long* count, cudaStream_t stream) {
  return launch(count_unlike, blocks_for(bytes / 4), kThreads, 0, stream, at, bytes, pattern, count);
}

cudaError_t enqueue_slow_copy(const unsigned char* from, unsigned char* to, size_t bytes, uint64_t wait_ns, cudaStream_t stream) {
  return launch(slow_copy, 32, kThreads, 0, stream, from, to, bytes, wait_ns);
}

cudaError_t enqueue_read(const unsigned char* at, size_t bytes, uint32_t* sink, cudaStream_t stream) {
  return launch(read_memory, blocks_for(bytes / 4), kThreads, 0, stream, reinterpret_cast<const uint32_t*>(at), bytes / 4, sink);
}

cudaError_t enqueue_read_everywhere(const unsigned char* at, size_t bytes, int multiprocessors, uint32_t* sink, cudaStream_t stream) {
  return launch(read_everywhere, static_cast<unsigned>(multiprocessors), kThreads, 0, stream, reinterpret_cast<const uint32_t*>(at), bytes / 4, sink);
}

cudaError_t prepare_dirty(size_t shared_bytes) {
  return cudaFuncSetAttribute(reinterpret_cast<const void*>(dirty), cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes));
}

cudaError_t enqueue_dirty(uint32_t seed, int multiprocessors, size_t shared_bytes, uint32_t* sink, cudaStream_t stream) {
  return launch(dirty, static_cast<unsigned>(multiprocessors), kThreads, shared_bytes, stream, seed, shared_bytes / 4, sink);
}

cudaError_t enqueue_busy(uint64_t ns, uint32_t* sink, cudaStream_t stream) { return launch(busy, 8, kThreads, 0, stream, ns, sink); }

cudaError_t enqueue_stamp(Stamp* at, cudaStream_t stream) { return launch(stamp, 1, 1, 0, stream, at); }

double clock_between(const Stamp& from, const Stamp& to) {
  if (from.multiprocessor != to.multiprocessor || to.ns <= from.ns) return 0;
  return static_cast<double>(to.cycles - from.cycles) / static_cast<double>(to.ns - from.ns) * 1e3;
}
