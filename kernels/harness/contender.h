// contender.h: a kernel's shared object, and the device memory of its calls.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "device.h"
#include "gate.h"
#include "op.h"

// CallMemory is the device memory of several calls ("sets") of one problem, in
// one allocation: every tensor lies between two guard bands at an address that
// is a multiple of 256, inputs of a set first, then its outputs.
class CallMemory {
 public:
  static constexpr size_t kGuard = 4096;  // bytes of each band

  // With a padding seed, tensors lie random distances (up to 64 KiB, in steps of
  // 256 bytes) apart, so that no process is lucky with its addresses for long.
  // All copies are ordered with the stream's other work.
  CallMemory(const Problem& problem, int sets, std::optional<uint64_t> padding_seed, const Stream& stream);

  // A Span is where one tensor lies in the allocation.
  struct Span {
    size_t offset;
    size_t bytes;
  };

  int sets() const { return static_cast<int>(inputs_.size()); }
  const std::vector<Span>& inputs(int set) const { return inputs_[set]; }
  const std::vector<Span>& outputs(int set) const { return outputs_[set]; }
  size_t size() const { return size_; }
  unsigned char* base() const { return static_cast<unsigned char*>(memory_.get()); }

  void upload(const Bytes& image);
  Bytes download() const;
  void upload_inputs(int set, const std::vector<Bytes>& data);
  void copy_inputs(int from, int to);
  void poison_outputs(unsigned char pattern);
  std::vector<Bytes> download_outputs(int set) const;

 private:
  Span place(size_t bytes, size_t padding);
  void copy(void* to, const void* from, size_t bytes, const char* doing) const;

  const Stream& stream_;
  std::vector<std::vector<Span>> inputs_, outputs_;
  size_t size_ = 0;
  DeviceMemory memory_;
};

// A Contender is one kernel of somebody's.
class Contender {
 public:
  Contender(const std::string& id, const std::string& path) : id_(id), path_(path) {}

  // prepare loads the kernel's shared object, the first time, and tells it which
  // problem comes next. Loading runs the object's initialisers, so it belongs
  // inside a unit that has been announced.
  void prepare(const Problem& problem, const CallMemory& memory);
  // enqueue puts one call on the stream. It returns what gate_run returned.
  int enqueue(const Problem& problem, const CallMemory& memory, int set, cudaStream_t stream) const;
  // run is enqueue, with a Failure for everything but 0.
  void run(const Problem& problem, const CallMemory& memory, int set, cudaStream_t stream) const;

 private:
  void raise(int result, const char* function, const Problem& problem) const;

  void load();

  std::string id_, path_;
  int (*run_)(const gate_call*, cudaStream_t) = nullptr;
  int (*prepare_)(const gate_call*) = nullptr;
};
