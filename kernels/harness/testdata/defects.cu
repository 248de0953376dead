// One planted defect for each way in which the program must refuse a contender.
// The environment variable GATE_DEFECT chooses it; the rest is a correct kernel.

#include <cstdio>
#include <cstdlib>
#include <cstring>

#define gate_run correct_run
#include "../../attention/r02_minimal_fp16/minimal_fp16.cu"
#undef gate_run

__global__ void put(half* at, float value) { *at = __float2half(value); }
__global__ void put_all(half* out, float value) { out[blockIdx.x * blockDim.x + threadIdx.x] = __float2half(value); }

__device__ int calls_so_far;
__global__ void put_count(half* out) { *out = __float2half(static_cast<float>(++calls_so_far)); }
__global__ void spoil_later_calls(half* out) {
  if (++calls_so_far > 8) *out = __float2half(1);
}

static int put_at(half* at, cudaStream_t stream) {
  put<<<1, 1, 0, stream>>>(at, 1);
  return cudaGetLastError();
}

extern "C" int gate_run(const gate_call* call, cudaStream_t stream) {
  const char* name = std::getenv("GATE_DEFECT");
  const auto is = [&](const char* defect) { return name != nullptr && std::strcmp(name, defect) == 0; };
  half* out = static_cast<half*>(call->outputs[0]);
  const int64_t count = call->dims[0] * call->dims[1] * call->dims[2] * call->dims[3];

  if (is("writes_nothing")) return 0;
  if (is("refuses")) return cudaErrorInvalidValue;
  if (is("nan")) {
    put_all<<<static_cast<unsigned>(count / 64), 64, 0, stream>>>(out, NAN);
    return cudaGetLastError();
  }
  if (is("prints")) {
    std::printf("{\"end\":{\"begin\":0,\"check\":0,\"time\":0,\"profile\":0,\"error\":0}}\n");
    std::fflush(stdout);
    return GATE_UNSUPPORTED;
  }
  if (is("own_stream")) {
    static cudaStream_t own = nullptr;
    if (own == nullptr) cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);
    return correct_run(call, own);
  }
  if (is("default_stream")) return correct_run(call, cudaStreamLegacy);
  if (is("first_call_only")) {
    static bool called = false;
    if (called) return 0;
    called = true;
  }
  if (is("skips_tail")) {
    const int64_t shorter[] = {1, 1, call->dims[2] - 64, 64};
    gate_call part = *call;
    part.dims = shorter;
    return correct_run(&part, stream);
  }

  if (const int error = correct_run(call, stream)) return error;
  if (is("beyond_output")) return put_at(out + count, stream);
  if (is("before_output")) return put_at(out - 1, stream);
  if (is("writes_input")) return put_at(static_cast<half*>(const_cast<void*>(call->inputs[1])) + 7, stream);
  if (is("faults")) return put_at(nullptr, stream);
  if (is("waits")) return cudaStreamSynchronize(stream);
  if (is("unrepeatable")) put_count<<<1, 1, 0, stream>>>(out);
  if (is("later_calls_differ")) spoil_later_calls<<<1, 1, 0, stream>>>(out);
  return cudaGetLastError();
}
