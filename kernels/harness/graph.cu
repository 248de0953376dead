#include "graph.h"

#include <map>
#include <string>

#include "clock.h"
#include "failure.h"

namespace {

// Long enough for any launch, short enough that a launch which waits for the
// stream that waits for it is not a hang.
constexpr std::chrono::milliseconds kLongestHold{50};
constexpr int kTries = 5;

const char* kind_of(cudaGraphNodeType type) {
  switch (type) {
    case cudaGraphNodeTypeKernel: return "kernel";
    case cudaGraphNodeTypeMemset: return "memset";
    case cudaGraphNodeTypeMemcpy: return "memcpy";
    case cudaGraphNodeTypeHost: return "host function";
    case cudaGraphNodeTypeGraph: return "graph";
    case cudaGraphNodeTypeMemAlloc: return "allocation";
    case cudaGraphNodeTypeMemFree: return "release of memory";
    default: return "node of another kind";
  }
}

cudaGraphNodeType type_of(cudaGraphNode_t node) {
  cudaGraphNodeType type;
  must(cudaGraphNodeGetType(node, &type), "reading a graph node");
  return type;
}

// What two nodes at the same place of two calls have in common. The runtime does
// not know the kernels of every library; of those the kind alone is compared.
struct Signature {
  cudaGraphNodeType type;
  const void* function = nullptr;
  dim3 grid{0, 0, 0}, block{0, 0, 0};

  explicit Signature(cudaGraphNode_t node) : type(type_of(node)) {
    cudaKernelNodeParams params = {};
    if (type != cudaGraphNodeTypeKernel) return;
    if (cudaGraphKernelNodeGetParams(node, &params) != cudaSuccess) {
      (void)cudaGetLastError();
      return;
    }
    function = params.func;
    grid = params.gridDim;
    block = params.blockDim;
  }
  void note(std::vector<uint32_t>& launches) const {
    for (const dim3& size : {grid, block}) launches.insert(launches.end(), {size.x, size.y, size.z});
  }
  bool operator==(const Signature& o) const {
    const auto same = [](const dim3& a, const dim3& b) { return a.x == b.x && a.y == b.y && a.z == b.z; };
    return type == o.type && function == o.function && same(grid, o.grid) && same(block, o.block);
  }
};

[[noreturn]] void no_chain(const std::string& why) {
  throw Failure("not_a_chain", why + ": a call is captured as one chain of kernels, memsets and copies, each after the one before it");
}

}  // namespace

CallGraph::CallGraph(const Contender& contender, const Problem& problem, const CallMemory& memory, Shape shape, const Stream& stream)
    : shape_(std::move(shape)), results_(problem), on_(static_cast<size_t>(shape_.calls), true) {
  try {
    capture(contender, problem, memory, stream);
    results_.finish(contender, memory, shape_.sets);
    read_chain();
    hold_to_one_sequence();
    must(cudaGraphInstantiate(&executable_, graph_, 0), "instantiating a graph");
    must(cudaGraphUpload(executable_, stream.get()), "uploading a graph");
    stream.wait("uploading a graph");
  } catch (...) {
    release();
    throw;
  }
}

CallGraph::~CallGraph() { release(); }

void CallGraph::release() {
  if (executable_ != nullptr) (void)cudaGraphExecDestroy(executable_);
  if (graph_ != nullptr) (void)cudaGraphDestroy(graph_);
}

// The capture is ended whatever gate_run does; the first failure is thrown after.
void CallGraph::capture(const Contender& contender, const Problem& problem, const CallMemory& memory, const Stream& stream) {
  std::optional<Failure> thrown;
  int result = 0;
  must(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal), "beginning a capture");
  try {
    if (shape_.own) shape_.own();
    for (int i = 0; i < shape_.calls && result == 0; ++i) {
      result = contender.enqueue(problem, memory, i % shape_.sets, stream.get());
      if (result == 0) results_.add(contender, memory, i % shape_.sets);
    }
  } catch (const Failure& failure) {
    thrown = failure;
  }
  const cudaError_t ended = cudaStreamEndCapture(stream.get(), &graph_);
  (void)cudaGetLastError();  // a failed capture leaves its error behind
  if (thrown) throw *thrown;
  if (ended != cudaSuccess) throw Failure("capture", "the kernel cannot be captured", ended);
  if (result == GATE_UNSUPPORTED) throw Failure("unsupported", contender.id() + " refuses case " + problem.name);
  if (result < 0) throw Failure("capture", "gate_run returned " + std::to_string(result) + " under capture");
  if (result > 0) throw Failure("capture", "gate_run failed under capture", static_cast<cudaError_t>(result));
}

// Follows the edges from the one node without a predecessor to the one without a
// successor, which must be all of them.
void CallGraph::read_chain() {
  size_t count = 0, edges = 0;
  must(cudaGraphGetNodes(graph_, nullptr, &count), "counting graph nodes");
  if (count == static_cast<size_t>(shape_.own_nodes))
    throw Failure("empty_graph", std::to_string(shape_.calls) + " captured calls gave no kernel launch");
  std::vector<cudaGraphNode_t> nodes(count);
  must(cudaGraphGetNodes(graph_, nodes.data(), &count), "reading graph nodes");
  must(cudaGraphGetEdges(graph_, nullptr, nullptr, nullptr, &edges), "counting graph edges");
  std::vector<cudaGraphNode_t> from(edges), to(edges);
  std::vector<cudaGraphEdgeData> data(edges);
  if (edges > 0) must(cudaGraphGetEdges(graph_, from.data(), to.data(), data.data(), &edges), "reading graph edges");
  std::map<cudaGraphNode_t, cudaGraphNode_t> next;
  std::map<cudaGraphNode_t, int> before;
  for (size_t i = 0; i < edges; ++i) {
    if (!next.emplace(from[i], to[i]).second || ++before[to[i]] > 1) no_chain("the captured calls branch");
    if (data[i].type == cudaGraphDependencyTypeProgrammatic && !shape_.programmatic)
      throw Failure("not_a_chain", "a launch is programmatic, and kernel.yaml does not say pdl: true");
  }
  if (edges + 1 != count) no_chain("the captured calls are " + std::to_string(count - edges) + " sequences that do not wait for each other");
  for (cudaGraphNode_t node : nodes)
    if (before.count(node) == 0) chain_.push_back(node);
  while (next.count(chain_.back()) != 0) chain_.push_back(next[chain_.back()]);
  if (chain_.size() != count) no_chain("the captured calls form a ring");
  chain_.erase(chain_.begin(), chain_.begin() + shape_.own_nodes);
}

void CallGraph::hold_to_one_sequence() {
  const size_t calls = static_cast<size_t>(shape_.calls), width = chain_.size() / calls;
  std::vector<Signature> first;
  int kernels = 0;
  for (size_t i = 0; i < chain_.size(); ++i) {
    const Signature node(chain_[i]);
    if (node.type != cudaGraphNodeTypeKernel && node.type != cudaGraphNodeTypeMemset && node.type != cudaGraphNodeTypeMemcpy)
      no_chain(std::string("a ") + kind_of(node.type) + " was captured");
    if (node.type == cudaGraphNodeTypeKernel) ++kernels;
    if (node.type == cudaGraphNodeTypeKernel && i < width) node.note(launches_);
    if (i < width) first.push_back(node);
    else if (width == 0 || !(first[i % width] == node)) no_chain("not every call launches the same");
  }
  if (kernels == 0 || kernels % shape_.calls != 0 || chain_.size() % calls != 0)
    throw Failure("empty_graph", std::to_string(shape_.calls) + " captured calls gave " + std::to_string(kernels) + " kernel launches");
  kernel_nodes_ = kernels;
}

void CallGraph::enable(const std::function<bool(int)>& on) {
  const size_t width = chain_.size() / static_cast<size_t>(shape_.calls);
  for (size_t call = 0; call < on_.size(); ++call) {
    const bool wanted = on(static_cast<int>(call));
    if (on_[call] == wanted) continue;
    for (size_t i = call * width; i < (call + 1) * width; ++i)
      must(cudaGraphNodeSetEnabled(executable_, chain_[i], wanted ? 1 : 0), "switching a call on or off");
    on_[call] = wanted;
  }
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

Reading Stopwatch::time(const std::function<cudaError_t()>& launch, const Stream& stream) {
  for (int i = 0; i < kTries; ++i) {
    released_ = expired_ = false;
    must(cudaLaunchHostFunc(stream.get(), hold, this), "holding the stream");
    const cudaError_t started = cudaEventRecord(start_.get(), stream.get());
    const cudaError_t launched = launch();
    const cudaError_t stopped = cudaEventRecord(stop_.get(), stream.get());
    const double released = host_ns();
    released_.store(true, std::memory_order_release);
    must(started, "recording an event");
    must(launched, "launching what is timed");
    must(stopped, "recording an event");
    must(cudaEventSynchronize(stop_.get()), "waiting for a replay");
    const double host = host_ns() - released;
    float milliseconds = 0;
    must(cudaEventElapsedTime(&milliseconds, start_.get(), stop_.get()), "reading the events");
    if (!expired_) return {static_cast<double>(milliseconds) * 1e6, host};
  }
  throw Failure("tool", "the host was too slow to enqueue a replay within 50 ms, five times in a row");
}
