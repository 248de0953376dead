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
  Contender(std::string id, std::string path) : id_(std::move(id)), path_(std::move(path)) {}

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

 private:
  void raise(int result, const char* function, const Problem& problem) const;
  void load();

  std::string id_, path_;
  int (*run_)(const gate_call*, cudaStream_t) = nullptr;
  int (*prepare_)(const gate_call*) = nullptr;
};
