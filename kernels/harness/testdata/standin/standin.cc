// The part of the CUDA runtime that the harness and the fixtures call, on the host.

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;

struct CUgraphNode_st {
  cudaGraphNodeType type;
  standin::Launch launch;       // of a kernel
  std::function<void()> work;   // of everything else
  bool programmatic = false;    // may start before the node before it has ended
};

struct CUgraph_st {
  unsigned long long id = 0;
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;
  struct Edge {
    CUgraphNode_st *from, *to;
    bool programmatic;
  };
  std::vector<Edge> edges;
};

struct CUgraphExec_st {
  CUgraph_st* graph;
  std::map<CUgraphNode_st*, bool> disabled;
};

struct CUstream_st {
  std::deque<std::function<void()>> queue;
  CUgraph_st* capture = nullptr;
  bool origin = false;
  std::vector<CUgraphNode_st*> last;  // what the next captured node waits for
};

struct CUevent_st {
  uint64_t ns = 0;
  CUgraph_st* capture = nullptr;
  std::vector<CUgraphNode_st*> last;
};

namespace {

constexpr size_t kL2Bytes = size_t{1} << 20, kLine = 128;
uint64_t clock_ns = 0;
cudaError_t last_error = cudaSuccess;
CUstream_st legacy;
std::vector<CUstream_st*> streams{&legacy};

cudaError_t fail(cudaError_t error) { return last_error = error; }

// The L2: the lines that were loaded last, and those that persist until they are reset.
class Cache {
 public:
  // load is true when the line was there.
  bool load(uintptr_t line, bool persists) {
    if (persisting_.count(line) != 0) return true;
    if (persists) persisting_.insert(line);
    const auto at = where_.find(line);
    if (at != where_.end()) {
      order_.splice(order_.begin(), order_, at->second);
      return true;
    }
    order_.push_front(line);
    where_[line] = order_.begin();
    if (order_.size() > kL2Bytes / kLine) {
      where_.erase(order_.back());
      order_.pop_back();
    }
    return false;
  }
  void reset_persisting() { persisting_.clear(); }

 private:
  std::set<uintptr_t> persisting_;
  std::list<uintptr_t> order_;
  std::unordered_map<uintptr_t, std::list<uintptr_t>::iterator> where_;
};
Cache cache;
size_t set_aside = 0;  // of the L2, for windows whose lines persist
cudaAccessPolicyWindow window = {};  // of the kernel that runs
bool loads_persist = false;

bool persists(const void* address) {
  const char *at = static_cast<const char*>(address), *begin = static_cast<const char*>(window.base_ptr);
  return loads_persist || (set_aside > 0 && window.hitProp == cudaAccessPropertyPersisting && at >= begin && at < begin + window.num_bytes);
}

std::function<void()> pending;  // what a programmatic launch did not wait for

void finish_pending() {
  if (!pending) return;
  const std::function<void()> work = std::move(pending);
  pending = nullptr;
  work();
}

int profiled = -1;  // launches since the profiler was started; -1 while it is off

void run_kernel(const standin::Launch& launch) {
  if (profiled >= 0) ++profiled;
  clock_ns += 1000;
  window = launch.window;
  loads_persist = false;
  gridDim = launch.grid;
  blockDim = launch.block;
  for (blockIdx.x = 0; blockIdx.x < launch.grid.x; ++blockIdx.x)
    for (threadIdx.x = 0; threadIdx.x < launch.block.x; ++threadIdx.x) launch.thread();
}

void run_node(const CUgraphNode_st& node) {
  if (node.type == cudaGraphNodeTypeKernel) run_kernel(node.launch);
  else node.work();
}

// A node after a programmatic edge runs before the one that it depends on, unless
// it waits: the worst that can happen to it.
void run_graph(const CUgraphExec_st& exec) {
  const auto& nodes = exec.graph->nodes;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const auto on = [&](size_t at) { return exec.disabled.count(nodes[at].get()) == 0 || !exec.disabled.at(nodes[at].get()); };
    if (!on(i)) continue;
    if (i + 1 < nodes.size() && nodes[i + 1]->programmatic && on(i + 1)) {
      finish_pending();
      pending = [node = nodes[i].get()] { run_node(*node); };
      continue;
    }
    run_node(*nodes[i]);
    finish_pending();
  }
  finish_pending();
}

void drain(CUstream_st& stream) {
  while (!stream.queue.empty()) {
    const std::function<void()> work = std::move(stream.queue.front());
    stream.queue.pop_front();
    work();
  }
}

CUstream_st& of(cudaStream_t stream) {
  return stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread ? legacy : *stream;
}

cudaError_t capture_node(CUstream_st& stream, CUgraphNode_st node) {
  CUgraph_st& graph = *stream.capture;
  graph.nodes.push_back(std::make_unique<CUgraphNode_st>(std::move(node)));
  CUgraphNode_st* added = graph.nodes.back().get();
  for (CUgraphNode_st* before : stream.last) graph.edges.push_back({before, added, added->programmatic});
  if (stream.last.empty()) added->programmatic = false;
  stream.last = {added};
  return cudaSuccess;
}

std::map<uint64_t, size_t> allocated;  // address → bytes

bool capturing() {
  return std::any_of(streams.begin(), streams.end(), [](CUstream_st* s) { return s->capture != nullptr; });
}

cudaError_t enqueue(cudaStream_t to, cudaGraphNodeType type, std::function<void()> work) {
  CUstream_st& stream = of(to);
  if (stream.capture != nullptr) return capture_node(stream, {type, {}, std::move(work)});
  if (&stream == &legacy && capturing()) return fail(cudaErrorStreamCaptureImplicit);
  stream.queue.push_back(std::move(work));
  return cudaSuccess;
}

}  // namespace

// The host's clock goes with the simulated one.
double host_ns() { return static_cast<double>(clock_ns += 100); }

namespace standin {

cudaError_t launch(Launch launch) {
  if (launch.grid.x == 0 || launch.block.x == 0) return fail(cudaErrorInvalidConfiguration);
  CUstream_st& stream = of(launch.stream);
  if (stream.capture != nullptr) {
    const bool programmatic = launch.programmatic;
    return capture_node(stream, {cudaGraphNodeTypeKernel, std::move(launch), {}, programmatic});
  }
  if (&stream == &legacy && capturing()) return fail(cudaErrorStreamCaptureImplicit);
  stream.queue.push_back([launch = std::move(launch)] { run_kernel(launch); });
  return cudaSuccess;
}

void touch(const void* address) { clock_ns += cache.load(reinterpret_cast<uintptr_t>(address) / kLine, persists(address)) ? 1 : 5; }
void prefetch(const void* address) { (void)cache.load(reinterpret_cast<uintptr_t>(address) / kLine, persists(address)); }
void persist() { loads_persist = true; }
uint64_t device_ns() { return clock_ns; }
uint64_t spend(uint64_t ns) { return clock_ns += ns; }

}  // namespace standin

void cudaGridDependencySynchronize() {
  const dim3 t = threadIdx, b = blockIdx, bd = blockDim, gd = gridDim;
  finish_pending();
  threadIdx = t, blockIdx = b, blockDim = bd, gridDim = gd;
}

extern "C" {

cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int) {
  *p = {};
  std::strcpy(p->name, "stand-in");
  p->major = 9;
  p->multiProcessorCount = 2;
  p->l2CacheSize = static_cast<int>(kL2Bytes);
  p->totalGlobalMem = size_t{1} << 28;
  p->sharedMemPerBlockOptin = 4096;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* v) { return *v = 13000, cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* v) { return *v = 13000, cudaSuccess; }
cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit) { return *value = 0, cudaSuccess; }
cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
  if (limit == cudaLimitPersistingL2CacheSize) set_aside = value;
  return cudaSuccess;
}
cudaError_t cudaCtxResetPersistingL2Cache() { return cache.reset_persisting(), cudaSuccess; }
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) { return *free = size_t{1} << 27, *total = size_t{1} << 28, cudaSuccess; }
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return cudaSuccess; }
cudaError_t cudaProfilerStart() { return profiled = 0, cudaSuccess; }
cudaError_t cudaProfilerStop() {
  std::fprintf(stderr, "profiled %d launches\n", profiled);
  return profiled = -1, cudaSuccess;
}

cudaError_t cudaGetLastError() {
  const cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}
const char* cudaGetErrorString(cudaError_t) { return "an error of the stand-in"; }
const char* cudaGetErrorName(cudaError_t error) { return error == cudaErrorStreamCaptureInvalidated ? "cudaErrorStreamCaptureInvalidated" : "cudaErrorStandIn"; }

cudaError_t cudaMalloc(void** to, size_t bytes) {
  *to = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (*to == nullptr) return fail(cudaErrorMemoryAllocation);
  allocated[reinterpret_cast<uintptr_t>(*to)] = bytes;
  return cudaSuccess;
}
cudaError_t cudaFree(void* at) {
  for (CUstream_st* s : streams) drain(*s);
  allocated.erase(reinterpret_cast<uintptr_t>(at));
  std::free(at);
  return cudaSuccess;
}
// Of the driver: where the allocation around an address begins, and its size.
int cuMemGetAddressRange_v2(unsigned long long* begin, size_t* bytes, unsigned long long at) {
  auto found = allocated.upper_bound(at);
  if (found == allocated.begin()) return 1;
  return *begin = (--found)->first, *bytes = found->second, 0;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* a, const void* at) {
  unsigned long long begin = 0;
  size_t bytes = 0;
  const auto address = reinterpret_cast<unsigned long long>(at);
  *a = {};
  const bool inside = cuMemGetAddressRange_v2(&begin, &bytes, address) == 0 && address < begin + bytes;
  return a->type = inside ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered, cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new CUstream_st;
  streams.push_back(*stream);
  return cudaSuccess;
}
cudaError_t cudaStreamSetAttribute(cudaStream_t, cudaStreamAttrID, const cudaStreamAttrValue*) { return cudaSuccess; }
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  streams.erase(std::find(streams.begin(), streams.end(), stream));
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t to) {
  CUstream_st& stream = of(to);
  if (stream.capture != nullptr) return fail(cudaErrorStreamCaptureUnsupported);
  drain(stream);
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  if (capturing()) return fail(cudaErrorStreamCaptureUnsupported);
  for (CUstream_st* s : streams) drain(*s);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  const auto copy = [=] { std::memcpy(to, from, bytes), clock_ns += 500; };
  if (kind != cudaMemcpyHostToDevice) return enqueue(stream, cudaGraphNodeTypeMemcpy, copy);
  // Pageable memory is read before the call returns.
  return enqueue(stream, cudaGraphNodeTypeMemcpy,
                 [to, data = std::vector<char>(static_cast<const char*>(from), static_cast<const char*>(from) + bytes)] { std::memcpy(to, data.data(), data.size()); });
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  if (capturing()) return fail(cudaErrorStreamCaptureImplicit);
  drain(legacy);
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* at, int value, size_t bytes, cudaStream_t stream) {
  return enqueue(stream, cudaGraphNodeTypeMemset, [=] { std::memset(at, value, bytes), clock_ns += 500; });
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return enqueue(stream, cudaGraphNodeTypeHost, [=] { function(data); });
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return *event = new CUevent_st, cudaSuccess; }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return cudaEventCreate(event); }
cudaError_t cudaEventDestroy(cudaEvent_t event) { return delete event, cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t to) {
  CUstream_st& stream = of(to);
  if (stream.capture != nullptr) return event->capture = stream.capture, event->last = stream.last, cudaSuccess;
  return enqueue(to, cudaGraphNodeTypeEventRecord, [=] { event->ns = clock_ns; });
}
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaDeviceSynchronize(); }
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t from, cudaEvent_t to) {
  return *ms = static_cast<float>(static_cast<double>(to->ns - from->ns) * 1e-6), cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t to, cudaEvent_t event, unsigned) {
  CUstream_st& stream = of(to);
  if (event->capture == nullptr) return cudaSuccess;
  stream.capture = event->capture;
  for (CUgraphNode_st* node : event->last)
    if (std::find(stream.last.begin(), stream.last.end(), node) == stream.last.end()) stream.last.push_back(node);
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t to, cudaStreamCaptureMode) {
  CUstream_st& stream = of(to);
  static unsigned long long captures = 0;
  stream.capture = new CUgraph_st;
  stream.capture->id = ++captures;
  stream.origin = true;
  stream.last.clear();
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t to, cudaGraph_t* graph) {
  CUstream_st& stream = of(to);
  *graph = stream.capture;
  for (CUstream_st* s : streams)
    if (s->capture == *graph) s->capture = nullptr;
  if (last_error == cudaErrorStreamCaptureUnsupported || last_error == cudaErrorStreamCaptureImplicit) {
    delete *graph;
    *graph = nullptr;
    return fail(cudaErrorStreamCaptureInvalidated);
  }
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  *status = of(stream).capture != nullptr ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t to, cudaStreamCaptureStatus* status, unsigned long long* id, cudaGraph_t*, const cudaGraphNode_t**,
                                     const cudaGraphEdgeData**, size_t*) {
  (void)cudaStreamIsCapturing(to, status);
  if (of(to).capture != nullptr) *id = of(to).capture->id;
  return cudaSuccess;
}
cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* nodes, const cudaGraphEdgeData*, size_t count, unsigned) {
  of(stream).last.assign(nodes, nodes + count);
  return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  *count = graph->nodes.size();
  if (nodes != nullptr)
    for (size_t i = 0; i < *count; ++i) nodes[i] = graph->nodes[i].get();
  return cudaSuccess;
}
cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, cudaGraphEdgeData* data, size_t* count) {
  *count = graph->edges.size();
  if (from != nullptr)
    for (size_t i = 0; i < *count; ++i) {
      from[i] = graph->edges[i].from;
      to[i] = graph->edges[i].to;
      data[i] = {};
      data[i].type = graph->edges[i].programmatic ? cudaGraphDependencyTypeProgrammatic : cudaGraphDependencyTypeDefault;
    }
  return cudaSuccess;
}
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) { return *type = node->type, cudaSuccess; }
cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams* params) {
  *params = {};
  params->func = const_cast<void*>(node->launch.function);
  params->gridDim = node->launch.grid;
  params->blockDim = node->launch.block;
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) { return *exec = new CUgraphExec_st{graph, {}}, cudaSuccess; }
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) { return delete exec, cudaSuccess; }
cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return delete graph, cudaSuccess; }
cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned on) { return exec->disabled[node] = on == 0, cudaSuccess; }
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  of(stream).queue.push_back([exec] { run_graph(*exec); });
  return cudaSuccess;
}

}  // extern "C"
