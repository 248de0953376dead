// Kernels that do nothing but write the number of each block, with the grid, the
// clusters and the shared memory of kernels that do something.

#include <cuda_runtime.h>

#include "gate.h"

#ifndef THREADS
#define THREADS 256
#endif
#ifndef SHARED_BYTES
#define SHARED_BYTES 0
#endif
#ifdef CLUSTER
#define CLUSTERED __cluster_dims__(CLUSTER)
#else
#define CLUSTER 1
#define CLUSTERED
#endif
#ifndef LOADS
#define LOADS 0  // each thread waits for 16 bytes
#endif

extern "C" __global__ void __launch_bounds__(THREADS) CLUSTERED floor_kernel(const float4* x, int* number) {
  int mine = static_cast<int>(blockIdx.x);
#if LOADS
  const float4 v = x[blockIdx.x * THREADS + threadIdx.x];
  if (v.x + v.y + v.z + v.w == 0) mine = -1;  // the op has no such input
#endif
#if CLUSTER > 1
  asm volatile("barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
#endif
  if (threadIdx.x == 0) number[blockIdx.x] = mine;
#if LOADS
  else if (mine < 0) number[blockIdx.x] = mine;
#endif
}

extern "C" int gate_prepare(const gate_call*) {
  return cudaFuncSetAttribute(floor_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
}

extern "C" int gate_run(const gate_call* call, cudaStream_t stream) {
  const int64_t blocks = call->dims[0];
  if (blocks % CLUSTER != 0 || blocks > 65535 || THREADS > 256) return GATE_UNSUPPORTED;
  floor_kernel<<<static_cast<unsigned>(blocks), THREADS, SHARED_BYTES, stream>>>(static_cast<const float4*>(call->inputs[0]), static_cast<int*>(call->outputs[0]));
  return cudaGetLastError();
}
