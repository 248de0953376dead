// A reference that allocates its results by itself, as a library does, and says where
// they lie. RESULT is right (the memory of each set is its own), stale (memory that no
// call writes), shared (by all sets), null, host (no memory of the device) or input.

#include "../../fixtures/cheats/rows.h"

#include <cstdlib>
#include <map>
#include <string>

static void* allocate(size_t bytes) {
  void* at = nullptr;
  return cudaMalloc(&at, bytes) == cudaSuccess ? at : nullptr;
}

struct Result {
  float* sum;
  int* largest;
};
static Result last;

extern "C" int gate_run(const gate_call* call, cudaStream_t stream) {
  static std::map<void*, Result> of_set;
  const std::string kind = RESULT;
  Rows a = unpack(call);
  Result& own = of_set[kind == "shared" ? nullptr : call->outputs[0]];
  if (own.sum == nullptr) {
    const size_t rows = static_cast<size_t>(a.rows);
    own = {static_cast<float*>(allocate(rows * sizeof(float))), static_cast<int*>(allocate(rows * sizeof(int)))};
  }
  last = own;
  a.sum = own.sum;
  a.largest = own.largest;
  return launch(a.rows, stream, honest_rows, a);
}

extern "C" void* gate_result(const gate_call* call, int32_t output) {
  static int host[4096];
  const std::string kind = RESULT;
  if (kind == "null") return nullptr;
  if (kind == "host") return host;
  if (kind == "input") return const_cast<void*>(call->inputs[0]);
  static std::map<void*, void*> unwritten;
  void*& other = unwritten[call->outputs[output]];
  if (other == nullptr) other = allocate(static_cast<size_t>(call->dims[0]) * sizeof(float));
  if (kind == "stale") return other;
  return output == 0 ? static_cast<void*>(last.sum) : static_cast<void*>(last.largest);
}
