// graph.h: a captured sequence of calls, and its timed replay.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include "contender.h"
#include "device.h"
#include "results.h"

// A CallGraph holds `calls` calls of one kernel, captured from a stream: call i
// works on set i mod sets. It is one chain of kernel, memset and memcpy nodes, the
// same ones for each call; anything else is a Failure. Before the calls may come
// nodes of the harness's own.
class CallGraph {
 public:
  struct Shape {
    int calls, sets;
    bool programmatic;                // whether programmatic edges are allowed
    int own_nodes = 0;                // of the harness, before the calls
    std::function<void()> own = {};   // enqueues them
  };

  CallGraph(const Contender& contender, const Problem& problem, const CallMemory& memory, Shape shape, const Stream& stream);
  CallGraph(const CallGraph&) = delete;
  CallGraph& operator=(const CallGraph&) = delete;
  ~CallGraph();

  int calls() const { return shape_.calls; }
  int sets() const { return shape_.sets; }
  int kernel_nodes() const { return kernel_nodes_; }
  // The kernels of one call, in order: three numbers of the grid and three of the block
  // of each, all 0 where the runtime does not know the kernel.
  const std::vector<uint32_t>& launches() const { return launches_; }
  cudaError_t launch(const Stream& stream) const { return cudaGraphLaunch(executable_, stream.get()); }

  // enable switches on the nodes of each call for which on(call) is true, and switches
  // off all others.
  void enable(const std::function<bool(int)>& on);

  // Where the calls leave those results that they do not write into their outputs.
  const Results& results() const { return results_; }

 private:
  void capture(const Contender& contender, const Problem& problem, const CallMemory& memory, const Stream& stream);
  void release();
  void read_chain();
  void hold_to_one_sequence();

  Shape shape_;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
  std::vector<cudaGraphNode_t> chain_;  // in order, without the harness's own
  int kernel_nodes_ = 0;
  std::vector<uint32_t> launches_;
  Results results_;
  std::vector<bool> on_;  // of each call
};

// A Reading is how long one replay took, by the device's events and by the host's
// clock from its release to its end.
struct Reading {
  double device_ns, host_ns;
};

// A Stopwatch times one launch by two events. The stream is held while all three
// are enqueued, so that no gap of the host's lies between the events.
class Stopwatch {
 public:
  Reading time(const std::function<cudaError_t()>& launch, const Stream& stream);
  Reading replay(const CallGraph& graph, const Stream& stream) {
    return time([&] { return graph.launch(stream); }, stream);
  }

 private:
  static void CUDART_CB hold(void* self);

  Event start_, stop_;
  std::atomic<bool> released_{false};
  std::atomic<bool> expired_{false};
};
