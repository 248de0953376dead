// cuda_runtime.h: a stand-in for CUDA's, which is found in its place. Types and
// functions are declared by the real cuda_runtime_api.h; standin.cc defines those
// that the harness and the fixtures call. A kernel is a function of the host that
// runs once for each thread of its grid, one after the other, so it can have no
// barrier and no shared memory.
//
// Streams do nothing until somebody waits for them. Time is simulated: a launch
// takes 1 µs, and 1 ns for each line of 128 bytes that a kernel says it loads, 5 ns
// where the line is not in the simulated L2.
#pragma once

#include <cuda_runtime_api.h>
#include <driver_types.h>
#include <vector_types.h>

#include <cstdint>
#include <functional>
#include <type_traits>

#undef __global__
#undef __device__
#undef __host__
#define __global__
#define __device__
#define __host__

namespace standin {
struct Launch {
  dim3 grid, block;
  cudaStream_t stream;
  bool programmatic;
  cudaAccessPolicyWindow window;
  const void* function;
  std::function<void()> thread;  // what one thread does
};
cudaError_t launch(Launch launch);
// touch is a load of a line, with its cost.
void touch(const void* address);
void prefetch(const void* address);  // a load that nobody waits for
void persist();  // what this kernel loads from now on stays in the L2
uint64_t device_ns();
uint64_t spend(uint64_t ns);
}  // namespace standin

extern thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;

inline uint64_t nanoseconds() { return standin::spend(500); }
inline uint32_t multiprocessor() { return 0; }
inline void let_dependents_start() {}
inline long long clock64() { return static_cast<long long>(standin::device_ns() * 2); }
void cudaGridDependencySynchronize();

template <class T, class U>
T atomicAdd(T* at, U value) {
  const T before = *at;
  *at = static_cast<T>(before + value);
  return before;
}

template <class... P, class... A>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(P...), A... args) {
  bool programmatic = false;
  cudaAccessPolicyWindow window = {};
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    if (config->attrs[i].id == cudaLaunchAttributeAccessPolicyWindow) window = config->attrs[i].val.accessPolicyWindow;
    programmatic |= config->attrs[i].id == cudaLaunchAttributeProgrammaticStreamSerialization && config->attrs[i].val.programmaticStreamSerializationAllowed != 0;
  }
  return standin::launch({config->gridDim, config->blockDim, config->stream, programmatic, window, reinterpret_cast<const void*>(kernel),
                          [=] { kernel(static_cast<P>(args)...); }});
}
