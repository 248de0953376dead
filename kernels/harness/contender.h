// contender.h: a kernel's shared object.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "gate.h"
#include "memory.h"
#include "problem.h"

// A Contender is one kernel of somebody's.
class Contender {
 public:
  // A reference is compared with and never judged; it alone may export gate_result.
  Contender(std::string id, std::string path, bool reference) : id_(std::move(id)), path_(std::move(path)), reference_(reference) {}

  const std::string& id() const { return id_; }
  // prepare loads the kernel's shared object, the first time, and tells it which
  // problem comes next. Loading runs the object's initialisers, so it belongs
  // inside a unit that has been announced.
  void prepare(const Problem& problem, const CallMemory& memory);
  // enqueue puts one call on the stream. It returns what gate_run returned; an
  // exception of gate_run is a Failure that names the kernel.
  int enqueue(const Problem& problem, const CallMemory& memory, int set, cudaStream_t stream) const;
  // run is enqueue, with a Failure for everything but 0.
  void run(const Problem& problem, const CallMemory& memory, int set, cudaStream_t stream) const;
  // result is where the call that was enqueued last leaves an output, of a kernel
  // that keeps its results.
  unsigned char* result(const Problem& problem, const CallMemory& memory, int set, int output) const;
  bool keeps_results() const { return result_ != nullptr; }

 private:
  void raise(int result, const char* function, const Problem& problem) const;
  void load();

  std::string id_, path_;
  bool reference_;
  int (*run_)(const gate_call*, cudaStream_t) = nullptr;
  int (*prepare_)(const gate_call*) = nullptr;
  void* (*result_)(const gate_call*, int32_t) = nullptr;
};
