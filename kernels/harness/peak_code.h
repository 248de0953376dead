// peak_code.h: kernels that do nothing but move bytes or multiply, as fast as the
// card can.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <vector>

// What is done with every byte of a buffer. A copy reads the first half of it and
// writes the other one.
enum class Traffic : uint8_t { read, write, copy };

// enqueue_traffic goes over the buffer so many times.
cudaError_t enqueue_traffic(Traffic traffic, unsigned char* at, size_t bytes, int passes, int multiprocessors, uint32_t* sink, cudaStream_t stream);

// A Way is an instruction that multiplies and adds, by what it multiplies and what it
// adds to. Which one is the fastest depends on the card: consumer cards add to 32 bits
// at half the speed of 16.
enum class Way : uint8_t { f64_plain, f64_matrix, f64_wide_matrix, f32_plain, f32_pairs, tf32, f16_to_f32, f16_to_f16, bf16, f8_to_f32, f8_to_f16, i8 };

// A Unit is a kind of arithmetic that an op can name, and the ways to do it.
struct Unit {
  const char* name;
  std::vector<Way> ways;
};
const std::vector<Unit>& units();

// enqueue_work does rounds of multiplications on every multiprocessor, and writes to
// *operations how many that were: 0 where nothing is known to reach the peak of this
// card in this way.
cudaError_t enqueue_work(Way way, unsigned rounds, int multiprocessors, unsigned long long* operations, uint32_t* sink, cudaStream_t stream);
