#include "contender.h"

#include <exception>

#include "failure.h"
#include "library.h"

namespace {

// A CallFrame keeps what a gate_call points to alive during the call.
struct CallFrame {
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  gate_call call = {};

  CallFrame(const Problem& problem, const CallMemory& memory, int set) {
    for (unsigned char* at : memory.inputs(set)) inputs.push_back(at);
    for (unsigned char* at : memory.outputs(set)) outputs.push_back(at);
    call.num_dims = static_cast<int32_t>(problem.dims.size());
    call.num_inputs = static_cast<int32_t>(inputs.size());
    call.num_outputs = static_cast<int32_t>(outputs.size());
    call.dims = problem.dims.data();
    call.inputs = inputs.data();
    call.outputs = outputs.data();
    call.workspace = memory.workspace();
    call.workspace_bytes = static_cast<int64_t>(problem.workspace_bytes);
  }
};

// Calls into the kernel's library; what it throws becomes a Failure.
template <class F>
auto guarded(const std::string& id, const char* function, F call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::exception& e) {
    throw Failure("exception", std::string(function) + " of " + id + " threw: " + e.what());
  } catch (...) {
    throw Failure("exception", std::string(function) + " of " + id + " threw");
  }
}

}  // namespace

void Contender::load() {
  if (run_ != nullptr) return;
  void* library = open_library(path_);
  result_ = optional_symbol<decltype(result_)>(library, "gate_result");
  if (result_ != nullptr && !reference_)
    throw Failure("symbol", id_ + " exports gate_result, as only a reference may: a kernel that is judged writes into the call's outputs");
  run_ = required_symbol<decltype(run_)>(library, path_, "gate_run");
  prepare_ = optional_symbol<decltype(prepare_)>(library, "gate_prepare");
}

void Contender::raise(int result, const char* function, const Problem& problem) const {
  if (result == GATE_UNSUPPORTED) throw Failure("unsupported", id_ + " refuses case " + problem.name);
  if (result < 0) throw Failure("cuda", std::string(function) + " returned " + std::to_string(result));
  if (result != 0) throw Failure("cuda", function, static_cast<cudaError_t>(result));
}

void Contender::prepare(const Problem& problem, const CallMemory& memory) {
  load();
  if (prepare_ == nullptr) return;
  const CallFrame frame(problem, memory, 0);
  raise(guarded(id_, "gate_prepare", [&] { return prepare_(&frame.call); }), "gate_prepare", problem);
}

int Contender::enqueue(const Problem& problem, const CallMemory& memory, int set, cudaStream_t stream) const {
  const CallFrame frame(problem, memory, set);
  return guarded(id_, "gate_run", [&] { return run_(&frame.call, stream); });
}

void Contender::run(const Problem& problem, const CallMemory& memory, int set, cudaStream_t stream) const {
  raise(enqueue(problem, memory, set, stream), "gate_run", problem);
}

unsigned char* Contender::result(const Problem& problem, const CallMemory& memory, int set, int output) const {
  const CallFrame frame(problem, memory, set);
  return static_cast<unsigned char*>(guarded(id_, "gate_result", [&] { return result_(&frame.call, output); }));
}
