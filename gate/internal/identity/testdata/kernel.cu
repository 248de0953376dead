// The base source of the cases in cases_test.go: one of everything that an identity must see or must not.
#include <cassert>
#include <cstdio>

#include "launch.h"

__constant__ float table[4] = {1.0f, 2.0f, 3.0f, 4.0f};
__device__ int counter = 7;
__device__ float total[8];
static __device__ int bias = 9;

__device__ float twice(float x) { return x * 2.0f; }
__device__ float (*apply)(float) = twice;

namespace {

__device__ float hidden = 3.5f;

__device__ __noinline__ float shift(float x) { return x * hidden + 1.0f; }

__global__ void anonymous(float* p) { p[threadIdx.x] = shift(p[threadIdx.x]); }

}  // namespace

template <int N>
__global__ void reverse(float* p) {
  __shared__ float s[N];
  s[threadIdx.x] = p[threadIdx.x];
  __syncthreads();
  p[threadIdx.x] = s[N - 1 - threadIdx.x] + table[threadIdx.x & 3];
}

static __global__ void internal(float* p) {
  static __device__ float kept = 1.5f;
  p[0] = apply(p[0]) + static_cast<float>(bias) + total[threadIdx.x & 7] + kept;
  kept += 1.0f;
}

extern "C" __global__ void __launch_bounds__(128) scale(float* p, int n) {
  extern __shared__ float staged[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    staged[i] = p[i] * 0.5f;
    atomicAdd(&counter, 1);
  }
  __syncthreads();
  p[threadIdx.x] = staged[threadIdx.x];
}

extern "C" int launch(float* p, int n, cudaStream_t stream) {
  assert(n > 0);
  const int blocks = (n + kBlock - 1) / kBlock;
  scale<<<blocks, kBlock, kSharedBytes, stream>>>(p, n);
  reverse<64><<<1, 64, 0, stream>>>(p);
  anonymous<<<1, 32, 0, stream>>>(p);
  internal<<<1, 8, 0, stream>>>(p);
  CHECK(cudaGetLastError());
  return 0;
}
