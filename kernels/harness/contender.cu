#include "contender.h"

#include <random>

#include "failure.h"
#include "library.h"

namespace {

constexpr size_t kAlignment = 256, kPaddingSteps = 256;  // 256 × 256 B = 64 KiB

size_t align(size_t offset) { return (offset + kAlignment - 1) / kAlignment * kAlignment; }

// A CallFrame keeps what a gate_call points to alive during the call.
struct CallFrame {
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  gate_call call;

  CallFrame(const Problem& problem, const CallMemory& memory, int set) {
    for (const CallMemory::Span& span : memory.inputs(set)) inputs.push_back(memory.base() + span.offset);
    for (const CallMemory::Span& span : memory.outputs(set)) outputs.push_back(memory.base() + span.offset);
    call.num_dims = static_cast<int32_t>(problem.dims.size());
    call.num_inputs = static_cast<int32_t>(inputs.size());
    call.num_outputs = static_cast<int32_t>(outputs.size());
    call.dims = problem.dims.data();
    call.inputs = inputs.data();
    call.outputs = outputs.data();
  }
};

}  // namespace

CallMemory::CallMemory(const Problem& problem, int sets, std::optional<uint64_t> padding_seed, const Stream& stream)
    : stream_(stream) {
  std::mt19937_64 random(padding_seed.value_or(0));
  const auto padding = [&] { return padding_seed ? random() % (kPaddingSteps + 1) * kAlignment : 0; };
  for (int set = 0; set < sets; ++set) {
    inputs_.emplace_back();
    outputs_.emplace_back();
    for (size_t bytes : problem.input_bytes) inputs_.back().push_back(place(bytes, padding()));
    for (size_t bytes : problem.output_bytes) outputs_.back().push_back(place(bytes, padding()));
  }
  memory_.allocate(size_);
}

CallMemory::Span CallMemory::place(size_t bytes, size_t padding) {
  const Span span = {align(size_ + padding + kGuard), bytes};
  size_ = span.offset + bytes + kGuard;
  return span;
}

void CallMemory::copy(void* to, const void* from, size_t bytes, const char* doing) const {
  must(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_.get()), doing);
}

void CallMemory::upload(const Bytes& image) {
  copy(base(), image.data(), image.size(), "copying to the device");
  stream_.wait("copying to the device");
}

Bytes CallMemory::download() const {
  Bytes image(size_);
  copy(image.data(), base(), image.size(), "copying from the device");
  stream_.wait("copying from the device");
  return image;
}

void CallMemory::upload_inputs(int set, const std::vector<Bytes>& data) {
  for (size_t i = 0; i < data.size(); ++i)
    copy(base() + inputs_[set][i].offset, data[i].data(), data[i].size(), "copying inputs to the device");
  stream_.wait("copying inputs to the device");
}

void CallMemory::copy_inputs(int from, int to) {
  for (size_t i = 0; i < inputs_[from].size(); ++i)
    copy(base() + inputs_[to][i].offset, base() + inputs_[from][i].offset, inputs_[from][i].bytes,
         "copying inputs on the device");
}

void CallMemory::poison_outputs(unsigned char pattern) {
  for (const std::vector<Span>& spans : outputs_)
    for (const Span& span : spans)
      must(cudaMemsetAsync(base() + span.offset, pattern, span.bytes, stream_.get()), "poisoning outputs");
  stream_.wait("poisoning outputs");
}

std::vector<Bytes> CallMemory::download_outputs(int set) const {
  std::vector<Bytes> data;
  for (const Span& span : outputs_[set]) {
    data.emplace_back(span.bytes);
    copy(data.back().data(), base() + span.offset, span.bytes, "copying outputs from the device");
  }
  stream_.wait("copying outputs from the device");
  return data;
}

void Contender::load() {
  if (run_ != nullptr) return;
  void* library = open_library(path_);
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
  raise(prepare_(&frame.call), "gate_prepare", problem);
}

int Contender::enqueue(const Problem& problem, const CallMemory& memory, int set, cudaStream_t stream) const {
  const CallFrame frame(problem, memory, set);
  return run_(&frame.call, stream);
}

void Contender::run(const Problem& problem, const CallMemory& memory, int set, cudaStream_t stream) const {
  raise(enqueue(problem, memory, set, stream), "gate_run", problem);
}
