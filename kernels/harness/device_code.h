// device_code.h: the harness's own kernels.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

// A Pattern is what memory holds before a replay: one byte throughout, or bytes
// that follow from a seed and are all likely to be plausible values.
struct Pattern {
  uint32_t seed;  // 0 for one byte throughout
  uint32_t byte;
};

// What the pattern says about byte number i.
unsigned char pattern_byte(Pattern pattern, size_t i);

// A Stamp is a moment on one multiprocessor.
struct Stamp {
  uint64_t cycles, ns;
  uint32_t multiprocessor, pad;
};

// All of these enqueue one kernel and return what the launch returned.
cudaError_t enqueue_pattern(unsigned char* at, size_t bytes, Pattern pattern, cudaStream_t stream);
// Adds the number of bytes in which a and b differ to *count.
cudaError_t enqueue_count_differences(const unsigned char* a, const unsigned char* b, size_t bytes, unsigned long long* count,
                                      cudaStream_t stream);
// Adds the number of bytes that do not hold the pattern to *count.
cudaError_t enqueue_count_unlike(const unsigned char* at, size_t bytes, Pattern pattern, unsigned long long* count, cudaStream_t stream);
// Copies after it has let dependent launches start and has waited: a kernel that
// does not wait for what it depends on sees what was there before.
cudaError_t enqueue_slow_copy(const unsigned char* from, unsigned char* to, size_t bytes, uint64_t wait_ns, cudaStream_t stream);
// Reads memory, so that other lines leave the L2 and none has to be written back.
cudaError_t enqueue_read(const unsigned char* at, size_t bytes, uint32_t* sink, cudaStream_t stream);
// Reads memory from every multiprocessor, so that it lies in the L2 wherever a
// kernel reads it from.
cudaError_t enqueue_read_everywhere(const unsigned char* at, size_t bytes, int multiprocessors, uint32_t* sink, cudaStream_t stream);
// Leaves garbage in shared memory and registers of every multiprocessor.
cudaError_t enqueue_dirty(uint32_t seed, int multiprocessors, size_t shared_bytes, uint32_t* sink, cudaStream_t stream);
cudaError_t prepare_dirty(size_t shared_bytes);
// Keeps a few multiprocessors busy.
cudaError_t enqueue_busy(uint64_t ns, uint32_t* sink, cudaStream_t stream);
cudaError_t enqueue_stamp(Stamp* stamp, cudaStream_t stream);

// clock_between is the clock between two stamps, in MHz; 0 where they do not tell it.
double clock_between(const Stamp& from, const Stamp& to);
