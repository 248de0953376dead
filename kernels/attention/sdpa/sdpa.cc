// PyTorch's scaled_dot_product_attention as a reference: what its users get for the
// same tensors. SDPA_BACKEND is the one backend that may be chosen. PyTorch allocates the
// result, so a call ends with a copy into its output: gate/docs/libraries.md says what
// that costs.

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <c10/core/InferenceMode.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdio>
#include <exception>
#include <vector>

#include "gate.h"

namespace {

enum Backend { kCudnn = 1, kFlash = 2, kEfficient = 3 };

void allow_only(Backend backend) {
  at::Context& context = at::globalContext();
  context.setSDPUseCuDNN(backend == kCudnn);
  context.setSDPUseFlash(backend == kFlash);
  context.setSDPUseMemEfficient(backend == kEfficient);
  context.setSDPUseMath(false);
}

}  // namespace

extern "C" int gate_run(const gate_call* call, struct CUstream_st* stream) {
  try {
    const c10::InferenceMode inference;
    const c10::cuda::CUDAStreamGuard guard(c10::cuda::getStreamFromExternal(stream, 0));
    allow_only(static_cast<Backend>(SDPA_BACKEND));
    const std::vector<int64_t> shape(call->dims, call->dims + call->num_dims);
    const auto options = at::TensorOptions().dtype(at::kHalf).device(at::kCUDA, 0);
    const auto tensor = [&](int i) { return at::from_blob(const_cast<void*>(call->inputs[i]), shape, options); };
    const at::Tensor result = at::scaled_dot_product_attention(tensor(0), tensor(1), tensor(2));
    // It lies in memory of PyTorch's allocator, which takes it back after the copy and
    // has it for the next call: after the first, eager one nothing is allocated.
    at::from_blob(call->outputs[0], shape, options).copy_(result, /*non_blocking=*/true);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "scaled_dot_product_attention: %s\n", e.what());
    return GATE_UNSUPPORTED;
  }
}
