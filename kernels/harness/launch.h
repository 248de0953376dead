// launch.h: launches of the harness's own kernels.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <type_traits>

template <class... P>
cudaError_t launch(void (*kernel)(P...), unsigned blocks, unsigned threads, size_t shared_bytes, cudaStream_t stream, std::common_type_t<P>... args) {
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, static_cast<P>(args)...);
}
