#include "results.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "failure.h"

namespace {

[[noreturn]] void refuse(const Contender& contender, int output, const std::string& why) {
  throw Failure("symbol", "gate_result of " + contender.id() + " for output " + std::to_string(output) + " " + why);
}

bool on_device(const void* at) {
  cudaPointerAttributes attributes = {};
  const bool known = cudaPointerGetAttributes(&attributes, at) == cudaSuccess;
  (void)cudaGetLastError();
  return known && attributes.type == cudaMemoryTypeDevice;
}

bool overlap(const unsigned char* a, size_t a_bytes, const unsigned char* b, size_t b_bytes) { return a < b + b_bytes && b < a + a_bytes; }

}  // namespace

void Results::add(const Contender& contender, const CallMemory& memory, int set) {
  if (!contender.keeps_results()) return;
  Call call{set, {}};
  for (size_t i = 0; i < problem_.output_bytes.size(); ++i) {
    unsigned char* at = contender.result(problem_, memory, set, static_cast<int>(i));
    if (at == nullptr) refuse(contender, static_cast<int>(i), "is null");
    call.outputs.push_back(at == memory.outputs(set)[i] ? nullptr : at);
  }
  calls_.push_back(std::move(call));
}

// A library may use the memory of a result again for a later call on the same set. That
// is no mistake: a set is judged by what it holds when all calls have ended. So each
// result is compared with the last results so far of the other sets.
void Results::finish(const Contender& contender, const CallMemory& memory, int sets) const {
  std::vector<const Call*> held(static_cast<size_t>(sets));
  for (const Call& call : calls_) {
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      const unsigned char* at = call.outputs[i];
      const size_t bytes = problem_.output_bytes[i];
      if (at == nullptr) continue;
      if (!on_device(at) || !on_device(at + bytes - 1)) refuse(contender, static_cast<int>(i), "is not in the device's memory");
      if (memory.touches(at, bytes)) refuse(contender, static_cast<int>(i), "is in the tensors of the harness, and not this output");
      for (const Call* other : held)
        for (size_t j = 0; other != nullptr && other->set != call.set && j < other->outputs.size(); ++j)
          if (other->outputs[j] != nullptr && overlap(at, bytes, other->outputs[j], problem_.output_bytes[j]))
            refuse(contender, static_cast<int>(i), "lies where the result of another set still lies");
    }
    held[static_cast<size_t>(call.set)] = &call;
  }
}

void Results::poison(Pattern pattern, cudaStream_t stream) const {
  std::set<std::pair<unsigned char*, size_t>> places;
  for (const Call& call : calls_)
    for (size_t i = 0; i < call.outputs.size(); ++i)
      if (call.outputs[i] != nullptr) places.emplace(call.outputs[i], problem_.output_bytes[i]);
  for (const auto& [at, bytes] : places) must(enqueue_pattern(at, bytes, pattern, stream), "poisoning results");
}

void Results::collect(const CallMemory& memory, const std::function<bool(int)>& on, cudaStream_t stream) const {
  std::map<int, const Call*> last;
  for (size_t i = 0; i < calls_.size(); ++i)
    if (on(static_cast<int>(i))) last[calls_[i].set] = &calls_[i];
  for (const auto& [set, call] : last)
    for (size_t i = 0; i < call->outputs.size(); ++i)
      if (call->outputs[i] != nullptr)
        must(cudaMemcpyAsync(memory.outputs(set)[i], call->outputs[i], problem_.output_bytes[i], cudaMemcpyDeviceToDevice, stream), "reading results");
}
