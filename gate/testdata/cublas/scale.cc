// out = 2 * in by cuBLAS, as a reference: one handle, made by the call that comes
// before the capture.
#include <cublas_v2.h>

#include "gate.h"

extern "C" int gate_run(const gate_call* call, cudaStream_t stream) {
  static cublasHandle_t handle = [] {
    cublasHandle_t made = nullptr;
    return cublasCreate(&made) == CUBLAS_STATUS_SUCCESS ? made : nullptr;
  }();
  const int count = static_cast<int>(call->dims[0]);
  const float two = 2;
  if (handle == nullptr || cublasSetStream(handle, stream) != CUBLAS_STATUS_SUCCESS) return cudaErrorUnknown;
  if (cublasScopy(handle, count, static_cast<const float*>(call->inputs[0]), 1, static_cast<float*>(call->outputs[0]), 1) != CUBLAS_STATUS_SUCCESS)
    return cudaErrorUnknown;
  return cublasSscal(handle, count, &two, static_cast<float*>(call->outputs[0]), 1) == CUBLAS_STATUS_SUCCESS ? cudaSuccess : cudaErrorUnknown;
}
