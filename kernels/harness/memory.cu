#include "memory.h"

#include <random>

namespace {

constexpr size_t kStep = 256, kPaddingSteps = 256;  // 256 × 256 B = 64 KiB

size_t align(size_t offset) { return (offset + kStep - 1) / kStep * kStep; }

}  // namespace

size_t CallMemory::most_bytes(const Problem& problem) {
  const size_t tensors = problem.input_bytes.size() + problem.output_bytes.size();
  return problem.call_bytes() + tensors * (2 * kGuard + (kPaddingSteps + 2) * kStep);
}

CallMemory::CallMemory(const Problem& problem, int sets, uint64_t padding_seed, const Stream& stream)
    : problem_(problem), stream_(stream) {
  std::mt19937_64 random(padding_seed);
  const auto padding = [&] { return random() % (kPaddingSteps + 1) * kStep; };
  std::vector<std::vector<size_t>> inputs(static_cast<size_t>(sets)), outputs(static_cast<size_t>(sets));
  for (size_t set = 0; set < inputs.size(); ++set) {
    for (size_t bytes : problem.input_bytes) inputs[set].push_back(place(bytes, padding()));
    for (size_t i = 0; i < problem.output_bytes.size(); ++i)
      outputs[set].push_back(problem.held_in[i] >= 0 ? inputs[set][static_cast<size_t>(problem.held_in[i])]
                                                     : place(problem.output_bytes[i], padding()));
  }
  size_ += kLastGuard;
  memory_.allocate(size_);
  if (problem.workspace_bytes > 0) workspace_.allocate(problem.workspace_bytes);
  const auto addresses = [&](const std::vector<size_t>& offsets) {
    std::vector<unsigned char*> list;
    for (size_t offset : offsets) list.push_back(base() + offset);
    return list;
  };
  for (size_t set = 0; set < inputs.size(); ++set) {
    inputs_.push_back(addresses(inputs[set]));
    outputs_.push_back(addresses(outputs[set]));
  }
}

// An alignment below 256 is given exactly, so that a kernel which relies on more
// than the op promises is found out.
size_t CallMemory::place(size_t bytes, size_t padding) {
  const size_t off = problem_.alignment % kStep;
  const size_t offset = align(size_ + padding + kGuard) + off;
  tensors_.push_back({offset, bytes});
  size_ = offset + bytes + kGuard;
  return offset;
}

void CallMemory::clear() { must(cudaMemsetAsync(base(), 0, size_, stream_.get()), "clearing memory"); }

void CallMemory::cover(Pattern bands) {
  if (bands.seed == 0) must(cudaMemsetAsync(base(), static_cast<int>(bands.byte), size_, stream_.get()), "writing bands");
  else must(enqueue_pattern(base(), size_, bands, stream_.get()), "writing bands");
}

void CallMemory::copy_inputs(const unsigned char* from, int set) {
  for (size_t i = 0; i < problem_.input_bytes.size(); ++i) {
    must(cudaMemcpyAsync(inputs(set)[i], from, problem_.input_bytes[i], cudaMemcpyDeviceToDevice, stream_.get()), "copying inputs");
    from += problem_.input_bytes[i];
  }
}

void CallMemory::poison_inputs(Pattern pattern, int set) {
  for (size_t i = 0; i < problem_.input_bytes.size(); ++i)
    must(enqueue_pattern(inputs(set)[i], problem_.input_bytes[i], pattern, stream_.get()), "poisoning inputs");
}

void CallMemory::poison_outputs(Pattern pattern, int set) {
  for (size_t i = 0; i < problem_.output_bytes.size(); ++i)
    if (problem_.held_in[i] < 0)
      must(enqueue_pattern(outputs(set)[i], problem_.output_bytes[i], pattern, stream_.get()), "poisoning outputs");
}

void CallMemory::poison_workspace(Pattern pattern) {
  if (problem_.workspace_bytes > 0)
    must(enqueue_pattern(workspace(), problem_.workspace_bytes, pattern, stream_.get()), "poisoning the workspace");
}

void CallMemory::read_inputs(int set, int multiprocessors, uint32_t* sink) const {
  for (size_t i = 0; i < problem_.input_bytes.size(); ++i)
    must(enqueue_read_everywhere(inputs(set)[i], problem_.input_bytes[i], multiprocessors, sink, stream_.get()), "reading inputs");
}

void CallMemory::copy_outputs(int set, unsigned char* to) const {
  for (size_t i = 0; i < problem_.output_bytes.size(); ++i) {
    must(cudaMemcpyAsync(to, outputs(set)[i], problem_.output_bytes[i], cudaMemcpyDeviceToDevice, stream_.get()), "copying outputs");
    to += problem_.output_bytes[i];
  }
}

void CallMemory::count_changed_inputs(const unsigned char* image, int set, unsigned long long* count) const {
  for (size_t i = 0; i < problem_.input_bytes.size(); ++i) {
    bool written = false;
    for (int input : problem_.held_in) written |= input == static_cast<int>(i);
    if (!written)
      must(enqueue_count_differences(inputs(set)[i], image, problem_.input_bytes[i], count, stream_.get()), "comparing inputs");
    image += problem_.input_bytes[i];
  }
}

void CallMemory::count_other_outputs(const unsigned char* expected, int set, unsigned long long* count) const {
  for (size_t i = 0; i < problem_.output_bytes.size(); ++i) {
    must(enqueue_count_differences(outputs(set)[i], expected, problem_.output_bytes[i], count, stream_.get()), "comparing outputs");
    expected += problem_.output_bytes[i];
  }
}

void CallMemory::count_written_outputs(Pattern poison, int set, unsigned long long* count) const {
  for (size_t i = 0; i < problem_.output_bytes.size(); ++i)
    if (problem_.held_in[i] < 0)
      must(enqueue_count_unlike(outputs(set)[i], problem_.output_bytes[i], poison, count, stream_.get()), "reading poison");
}

void CallMemory::count_broken_bands(Pattern bands, int sets, unsigned long long* before, unsigned long long* after) const {
  const auto count = [&](size_t from, size_t to, unsigned long long* into) {
    must(enqueue_count_unlike(base() + from, to - from, bands, into, stream_.get()), "reading bands");
  };
  const size_t in_a_set = tensors_.size() / inputs_.size(), tensors = in_a_set * static_cast<size_t>(sets);
  for (size_t i = 0; i < tensors; ++i) {
    const size_t end = tensors_[i].offset + tensors_[i].bytes;
    count(tensors_[i].offset - kGuard, tensors_[i].offset, before);
    count(end, i + 1 < tensors_.size() ? tensors_[i + 1].offset - kGuard : size_, after);
  }
  if (tensors < tensors_.size()) count(size_ - kLastGuard, size_, after);
}
