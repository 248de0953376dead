// The op attention, whose inputs are made once a process: a launch that times
// 30 kernels on one case would spend most of its time on the same random numbers.
// Every byte is attention.cc's. Correctness is not what is asked here: kernels
// are compared on the ordinary inputs alone.

#define gate_op_v1 plain_op_v1
#include "attention.cc"
#undef gate_op_v1

#include <map>
#include <mutex>
#include <tuple>

namespace {

std::mutex mutex;
std::map<std::tuple<std::vector<int64_t>, int32_t, uint64_t>, std::vector<std::vector<char>>> made;

int fill_once(const int64_t* dims, int32_t input_class, uint64_t seed, void* const* inputs) {
  const gate_op* op = plain_op_v1();
  const std::lock_guard<std::mutex> lock(mutex);
  auto [at, fresh] = made.try_emplace({std::vector<int64_t>(dims, dims + op->num_dims), input_class, seed});
  const auto bytes = [&](int i) { return static_cast<size_t>(op->inputs[i].elements(dims) * op->inputs[i].element_bytes); };
  if (fresh) {
    if (const int result = op->fill(dims, input_class, seed, inputs)) {
      made.erase(at);
      return result;
    }
    for (int i = 0; i < op->num_inputs; ++i) {
      const char* from = static_cast<const char*>(inputs[i]);
      at->second.emplace_back(from, from + bytes(i));
    }
  }
  for (int i = 0; i < op->num_inputs; ++i) std::memcpy(inputs[i], at->second[i].data(), bytes(i));
  return 0;
}

}  // namespace

extern "C" const gate_op* gate_op_v1(void) {
  static const gate_op op = [] {
    gate_op with_memory = *plain_op_v1();
    with_memory.fill = fill_once;
    with_memory.num_classes = 1;
    return with_memory;
  }();
  return &op;
}
