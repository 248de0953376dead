// memory.h: the device memory of the calls of one problem.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "device.h"
#include "device_code.h"
#include "problem.h"

// CallMemory is the device memory of several calls ("sets") in one allocation:
// inputs of a set first, then its outputs. Every tensor lies between bands, and
// 64 KiB follow the last one. Tensors lie random distances (up to 64 KiB) apart,
// so that no process is lucky with its addresses for long.
class CallMemory {
 public:
  static constexpr size_t kGuard = 4096, kLastGuard = 65536;  // bytes of a band

  CallMemory(const Problem& problem, int sets, uint64_t padding_seed, const Stream& stream);
  static size_t most_bytes(const Problem& problem);  // of one set, padding included

  int sets() const { return static_cast<int>(inputs_.size()); }
  const std::vector<unsigned char*>& inputs(int set) const { return inputs_[static_cast<size_t>(set)]; }
  const std::vector<unsigned char*>& outputs(int set) const { return outputs_[static_cast<size_t>(set)]; }
  unsigned char* workspace() const { return static_cast<unsigned char*>(workspace_.get()); }
  // touches is true where those bytes and this memory overlap.
  bool touches(const unsigned char* at, size_t bytes) const { return at < base() + size_ && base() < at + bytes; }

  // All of these enqueue work and do not wait.
  void clear();                                     // to zeros
  void cover(Pattern bands);                        // everything, tensors included
  void copy_inputs(const unsigned char* from, int set);  // from one image: the inputs, one after the other
  void poison_inputs(Pattern pattern, int set);
  void poison_outputs(Pattern pattern, int set);    // but for those that lie in an input
  void poison_workspace(Pattern pattern);
  void read_inputs(int set, int multiprocessors, uint32_t* sink) const;  // into the L2
  void copy_outputs(int set, unsigned char* to) const;
  // Counters of bytes (of words, where tensors are aligned).
  void count_changed_inputs(const unsigned char* image, int set, unsigned long long* count) const;
  void count_other_outputs(const unsigned char* expected, int set, unsigned long long* count) const;
  void count_written_outputs(Pattern poison, int set, unsigned long long* count) const;
  // Of the first sets, and the band after the last tensor of all.
  void count_broken_bands(Pattern bands, int sets, unsigned long long* before, unsigned long long* after) const;

 private:
  // A Tensor is where one lies in the allocation, in the order of addresses.
  struct Tensor {
    size_t offset, bytes;
  };

  size_t place(size_t bytes, size_t padding);
  unsigned char* base() const { return static_cast<unsigned char*>(memory_.get()); }

  const Problem& problem_;
  const Stream& stream_;
  std::vector<Tensor> tensors_;
  std::vector<std::vector<unsigned char*>> inputs_, outputs_;
  size_t size_ = 0;
  DeviceMemory memory_, workspace_;
};
