// Is a new allocation, or a new module, inside one process as good as a new
// process? An epoch is what one launch of gate-harness measures warm: buffers
// behind random padding, a graph, a warm-up, eight batches. This program runs
// several epochs in one process, with the harness's own classes, and prints one
// JSON line for each. README.md says how to build it and what to compare.

#include <cuda.h>
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "graph.h"
#include "op.h"

namespace {

constexpr int kSets = 4;
constexpr Pattern kPoison{0, 0xFF};
using Clock = std::chrono::steady_clock;

// What is made anew before each epoch; each includes the one before it.
enum class Renew { buffers, modules, context };

Renew parse_renew(const std::string& word) {
  if (word == "buffers") return Renew::buffers;
  if (word == "modules") return Renew::modules;
  if (word == "context") return Renew::context;
  throw Failure("usage", "want buffers, modules or context, got " + word);
}

// A Copy is a shared object under a name of its own, so that dlopen loads it
// again, and with it its device code. Its end closes what a contender opened.
class Copy {
 public:
  Copy(const std::string& from, const std::string& name) : path_(name) {
    std::ifstream in(from, std::ios::binary);
    std::ofstream out(path_, std::ios::binary);
    out << in.rdbuf();
    if (!in || !out.flush()) throw Failure("load", "copying " + from + " to " + path_);
  }
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;
  ~Copy() { unlink(path_.c_str()); }

  const std::string& path() const { return path_; }

  // close unloads the object and returns whether it is gone.
  bool close() const {
    if (void* handle = dlopen(path_.c_str(), RTLD_NOW | RTLD_NOLOAD)) {
      dlclose(handle);
      dlclose(handle);  // the contender's own
    }
    void* left = dlopen(path_.c_str(), RTLD_NOW | RTLD_NOLOAD);
    if (left != nullptr) dlclose(left);
    return left == nullptr;
  }

 private:
  std::string path_;
};

template <class F>
F driver(const char* name) {
  void* function = nullptr;
  must(cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, nullptr), name);
  if (function == nullptr) throw Failure("cuda", std::string("the driver has no ") + name);
  return reinterpret_cast<F>(function);
}

// The module of the first kernel that one call launches, to see that it was
// loaded anew; null where the driver does not tell.
CUmodule module_of(const Contender& contender, const Problem& problem, const CallMemory& memory, const Stream& stream) {
  cudaGraph_t graph = nullptr;
  must(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal), "beginning a capture");
  const int result = contender.enqueue(problem, memory, 0, stream.get());
  must(cudaStreamEndCapture(stream.get(), &graph), "ending a capture");
  if (result != 0) throw Failure("capture", "gate_run failed under capture");
  size_t count = 0;
  must(cudaGraphGetNodes(graph, nullptr, &count), "counting nodes");
  std::vector<cudaGraphNode_t> nodes(count);
  must(cudaGraphGetNodes(graph, nodes.data(), &count), "reading nodes");
  CUmodule module = nullptr;
  for (cudaGraphNode_t node : nodes) {
    cudaGraphNodeType type;
    must(cudaGraphNodeGetType(node, &type), "reading a node");
    if (type != cudaGraphNodeTypeKernel) continue;
    CUDA_KERNEL_NODE_PARAMS params{};
    if (driver<CUresult (*)(CUgraphNode, CUDA_KERNEL_NODE_PARAMS*)>("cuGraphKernelNodeGetParams")(node, &params) != CUDA_SUCCESS) break;
    CUfunction function = params.func;
    if (function == nullptr && driver<CUresult (*)(CUfunction*, CUkernel)>("cuKernelGetFunction")(&function, params.kern) != CUDA_SUCCESS) break;
    if (driver<CUresult (*)(CUmodule*, CUfunction)>("cuFuncGetModule")(&module, function) != CUDA_SUCCESS) module = nullptr;
    break;
  }
  must(cudaGraphDestroy(graph), "destroying a graph");
  return module;
}

struct Result {
  std::vector<double> batches_ns;
  const void* buffers;
  const void* module;
  int calls;
};

double replay(Stopwatch& watch, const CallGraph& graph, int calls, const Stream& stream) {
  return watch.replay(graph, stream).device_ns / calls;
}

// measure does what the harness does warm, without the checks of the output.
Result measure(const Options& o, Contender& contender, const Problem& problem, const std::vector<Bytes>& images, uint64_t padding_seed) {
  const Stream stream;
  Stopwatch watch;
  CallMemory memory(problem, kSets, padding_seed, stream);
  DeviceMemory image;
  image.allocate(problem.all_inputs());
  for (int set = 0; set < kSets; ++set) {
    const Bytes& bytes = images[static_cast<size_t>(set)];
    must(cudaMemcpyAsync(image.get(), bytes.data(), bytes.size(), cudaMemcpyHostToDevice, stream.get()), "copying inputs");
    memory.copy_inputs(static_cast<unsigned char*>(image.get()), set);
    memory.poison_outputs(kPoison, set);
    stream.wait("copying inputs");
  }
  contender.prepare(problem, memory);
  contender.run(problem, memory, 0, stream.get());
  stream.wait("running the kernel");
  Result result{{}, memory.inputs(0)[0], module_of(contender, problem, memory, stream), kSets};
  {
    const CallGraph few(contender, problem, memory, {kSets, kSets, false}, stream);
    replay(watch, few, kSets, stream);
    const double call_ns = std::max(100.0, replay(watch, few, kSets, stream));
    result.calls = kSets * std::clamp(static_cast<int>(std::ceil(o.batch_us * 1e3 / call_ns / kSets)), 1, 1024);
  }
  const CallGraph graph(contender, problem, memory, {result.calls, kSets, false}, stream);
  const auto begin = Clock::now();
  while (std::chrono::duration<double, std::milli>(Clock::now() - begin).count() < o.warmup_ms)
    replay(watch, graph, result.calls, stream);
  for (int i = 0; i < o.warmup_batches; ++i) replay(watch, graph, result.calls, stream);
  for (int i = 0; i < o.batches; ++i) result.batches_ns.push_back(replay(watch, graph, result.calls, stream));
  return result;
}

void print(const std::string& kernel, const std::string& renew, int epoch, const Result& r, bool unloaded) {
  std::printf("{\"process\":%d,\"renew\":\"%s\",\"epoch\":%d,\"kernel\":\"%s\",\"calls\":%d,\"buffers\":\"%p\",\"module\":\"%p\",\"unloaded\":%s,\"batches_ns\":[",
              static_cast<int>(getpid()), renew.c_str(), epoch, kernel.c_str(), r.calls, r.buffers, r.module, unloaded ? "true" : "false");
  for (size_t i = 0; i < r.batches_ns.size(); ++i) std::printf("%s%.3f", i == 0 ? "" : ",", r.batches_ns[i]);
  std::printf("]}\n");
  std::fflush(stdout);
}

void run(const std::string& word, int epochs, const Options& o) {
  const Renew renew = parse_renew(word);
  const Op op(o.op_path);
  const Problem problem = op.problem(o.cases.at(0), o);
  std::vector<Bytes> inputs;
  for (int set = 0; set < kSets; ++set) inputs.push_back(op.inputs(problem, 0, o.seed + static_cast<uint64_t>(set)));
  std::mt19937_64 random(o.seed);
  const char* tmp = std::getenv("TMPDIR");
  const std::string folder = std::string(tmp == nullptr ? "/tmp" : tmp) + "/epochs-" + std::to_string(getpid()) + "-";
  std::vector<Contender> kept;
  for (const KernelSpec& k : o.kernels) kept.emplace_back(k.id, k.path);
  for (int epoch = 0; epoch < epochs; ++epoch) {
    if (renew == Renew::context && epoch > 0) must(cudaDeviceReset(), "resetting the context");
    std::vector<size_t> order(o.kernels.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    for (size_t i : order) {
      if (renew == Renew::buffers) {
        print(o.kernels[i].id, word, epoch, measure(o, kept[i], problem, inputs, random()), false);
        continue;
      }
      const Copy copy(o.kernels[i].path, folder + std::to_string(epoch) + "-" + std::to_string(i) + ".so");
      Contender fresh(o.kernels[i].id, copy.path());
      const Result result = measure(o, fresh, problem, inputs, random());
      print(o.kernels[i].id, word, epoch, result, copy.close());
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc < 4) throw Failure("usage", "want buffers|modules|context EPOCHS time --op …");
    const int epochs = std::atoi(argv[2]);
    if (epochs < 1 || epochs > 1000) throw Failure("usage", "want 1 to 1000 epochs");
    const Options options = parse({argv + 3, argv + argc});
    if (options.cases.size() != 1) throw Failure("usage", "want exactly one --case");
    run(argv[1], epochs, options);
  } catch (const Failure& failure) {
    std::fprintf(stderr, "epochs: %s: %s\n", failure.kind.c_str(), failure.message.c_str());
    return failure.kind == "usage" ? 2 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "epochs: %s\n", e.what());
    return 1;
  }
  return 0;
}
