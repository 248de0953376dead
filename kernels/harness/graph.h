// graph.h: a captured sequence of calls, and its timed replay.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>

#include "contender.h"
#include "device.h"

// A CallGraph holds `calls` calls of one kernel, captured from a stream: call i
// works on set (first + i) mod sets. A kernel that uses another stream, waits,
// allocates or does nothing cannot be captured like that, and is a Failure.
class CallGraph {
 public:
  CallGraph(const Contender& contender, const Problem& problem, const CallMemory& memory, int first, int calls,
            const Stream& stream);
  CallGraph(const CallGraph&) = delete;
  CallGraph& operator=(const CallGraph&) = delete;
  ~CallGraph();

  int kernel_nodes() const { return kernel_nodes_; }
  cudaError_t launch(const Stream& stream) const { return cudaGraphLaunch(executable_, stream.get()); }

 private:
  void count_nodes(int calls);

  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
  int kernel_nodes_ = 0;
};

// A Stopwatch times one replay by two events. The stream is held while all three
// are enqueued, so that no gap of the host's lies between the events.
class Stopwatch {
 public:
  // replay_ns runs the graph once and returns its duration in ns.
  double replay_ns(const CallGraph& graph, const Stream& stream);

 private:
  static void CUDART_CB hold(void* self);

  Event start_, stop_;
  std::atomic<bool> released_{false};
  std::atomic<bool> expired_{false};
};
