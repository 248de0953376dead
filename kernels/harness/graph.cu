#include "graph.h"

#include <string>
#include <vector>

#include "failure.h"

namespace {

// Long enough for any launch, short enough that a launch which waits for the
// stream that waits for it is not a hang.
constexpr std::chrono::milliseconds kLongestHold{50};
constexpr int kTries = 5;

// Enqueues the calls; the first failure ends the capture and is thrown after it.
int enqueue_calls(const Contender& contender, const Problem& problem, const CallMemory& memory, int first, int calls,
                  const Stream& stream) {
  for (int i = 0; i < calls; ++i)
    if (const int result = contender.enqueue(problem, memory, (first + i) % memory.sets(), stream.get())) return result;
  return 0;
}

}  // namespace

CallGraph::CallGraph(const Contender& contender, const Problem& problem, const CallMemory& memory, int first, int calls,
                     const Stream& stream) {
  must(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal), "beginning a capture");
  const int result = enqueue_calls(contender, problem, memory, first, calls, stream);
  const cudaError_t ended = cudaStreamEndCapture(stream.get(), &graph_);
  (void)cudaGetLastError();  // a failed capture leaves its error behind
  if (ended != cudaSuccess) throw Failure("capture", "the kernel cannot be captured", ended);
  if (result < 0) throw Failure("capture", "gate_run returned " + std::to_string(result) + " under capture");
  if (result > 0) throw Failure("capture", "gate_run failed under capture", static_cast<cudaError_t>(result));
  count_nodes(calls);
  must(cudaGraphInstantiate(&executable_, graph_, 0), "instantiating a graph");
  must(cudaGraphUpload(executable_, stream.get()), "uploading a graph");
  stream.wait("uploading a graph");
}

CallGraph::~CallGraph() {
  if (executable_ != nullptr) (void)cudaGraphExecDestroy(executable_);
  if (graph_ != nullptr) (void)cudaGraphDestroy(graph_);
}

void CallGraph::count_nodes(int calls) {
  size_t count = 0;
  must(cudaGraphGetNodes(graph_, nullptr, &count), "counting graph nodes");
  std::vector<cudaGraphNode_t> nodes(count);
  if (count > 0) must(cudaGraphGetNodes(graph_, nodes.data(), &count), "reading graph nodes");
  for (cudaGraphNode_t node : nodes) {
    cudaGraphNodeType type;
    must(cudaGraphNodeGetType(node, &type), "reading a graph node");
    if (type == cudaGraphNodeTypeKernel) ++kernel_nodes_;
  }
  if (kernel_nodes_ == 0 || kernel_nodes_ % calls != 0)
    throw Failure("empty_graph", std::to_string(calls) + " captured calls gave " + std::to_string(kernel_nodes_) + " kernel launches");
}

void CUDART_CB Stopwatch::hold(void* self) {
  Stopwatch& watch = *static_cast<Stopwatch*>(self);
  const auto deadline = std::chrono::steady_clock::now() + kLongestHold;
  while (!watch.released_.load(std::memory_order_acquire)) {
    if (std::chrono::steady_clock::now() < deadline) continue;
    watch.expired_.store(true, std::memory_order_release);
    return;
  }
}

double Stopwatch::replay_ns(const CallGraph& graph, const Stream& stream) {
  for (int i = 0; i < kTries; ++i) {
    released_ = expired_ = false;
    must(cudaLaunchHostFunc(stream.get(), hold, this), "holding the stream");
    const cudaError_t started = cudaEventRecord(start_.get(), stream.get());
    const cudaError_t launched = graph.launch(stream);
    const cudaError_t stopped = cudaEventRecord(stop_.get(), stream.get());
    released_.store(true, std::memory_order_release);
    must(started, "recording an event");
    must(launched, "launching a graph");
    must(stopped, "recording an event");
    must(cudaEventSynchronize(stop_.get()), "waiting for a replay");
    float milliseconds = 0;
    must(cudaEventElapsedTime(&milliseconds, start_.get(), stop_.get()), "reading the events");
    if (!expired_) return static_cast<double>(milliseconds) * 1e6;
  }
  throw Failure("cuda", "the host was too slow to enqueue a replay within 50 ms, five times in a row");
}
