// PyTorch's scaled_dot_product_attention as a reference: what its users get for the
// same tensors. SDPA_BACKEND is the one backend that may be chosen. PyTorch allocates the
// result; gate_result says where, so that no copy is charged to it. A result in another
// layout than the op's is copied into the call's output.

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <c10/core/InferenceMode.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdio>
#include <exception>
#include <map>
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

// The result of the last call on each output, which stays allocated: graphs write into
// it when they are replayed. A call gives the result of the call before it on the same
// output back first, so that the allocator has that memory for the new one; what the
// other outputs hold is not touched. There are as many results as outputs.
std::map<void*, at::Tensor> results;

}  // namespace

// The harness has no graph of the case before any more.
extern "C" int gate_prepare(const gate_call*) {
  results.clear();
  return 0;
}

extern "C" void* gate_result(const gate_call* call, int32_t output) {
  const auto kept = results.find(call->outputs[output]);
  return kept == results.end() ? call->outputs[output] : kept->second.data_ptr();
}

extern "C" int gate_run(const gate_call* call, struct CUstream_st* stream) {
  try {
    const c10::InferenceMode inference;
    const c10::cuda::CUDAStreamGuard guard(c10::cuda::getStreamFromExternal(stream, 0));
    allow_only(static_cast<Backend>(SDPA_BACKEND));
    const std::vector<int64_t> shape(call->dims, call->dims + call->num_dims);
    const auto options = at::TensorOptions().dtype(at::kHalf).device(at::kCUDA, 0);
    const auto tensor = [&](int i) { return at::from_blob(const_cast<void*>(call->inputs[i]), shape, options); };
    results.erase(call->outputs[0]);
    const at::Tensor result = at::scaled_dot_product_attention(tensor(0), tensor(1), tensor(2));
    // PyTorch allows itself to allocate under a capture, and frees nothing in one.
    if (result.is_contiguous()) results[call->outputs[0]] = result;
    else at::from_blob(call->outputs[0], shape, options).copy_(result, /*non_blocking=*/true);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "scaled_dot_product_attention: %s\n", e.what());
    return GATE_UNSUPPORTED;
  }
}
