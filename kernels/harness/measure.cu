// Latency. N calls are captured into a graph, rotating over several sets of
// inputs, and the graph's replay is timed; nothing is subtracted. Warm: the sets
// stay in the L2. Cold: more than twice the L2 passes between two uses of a set,
// over several graphs if need be.

#include <algorithm>
#include <cmath>
#include <memory>

#include "graph.h"
#include "units.h"

namespace {

constexpr int kDistinctSets = 4;  // sets with data of their own; others are copies
constexpr int kMaxWarmCalls = 4096, kMaxColdCalls = 64, kMaxColdSets = 16384;
constexpr unsigned char kPoison = 0xFF;
constexpr double kMinCallNs = 100;  // below any kernel: keeps N finite

using Clock = std::chrono::steady_clock;

// A Plan is how one regime is measured: graphs · calls is a multiple of sets, so
// replaying all graphs in turn walks through the sets without a jump.
struct Plan {
  int sets, calls, graphs;
};

Plan plan_warm(double call_ns, double batch_us) {
  const double wanted = std::min<double>(kMaxWarmCalls, std::ceil(batch_us * 1e3 / call_ns));
  const int rounds = std::max(1, static_cast<int>(std::ceil(wanted / kDistinctSets)));
  return {kDistinctSets, rounds * kDistinctSets, 1};
}

Plan plan_cold(double call_ns, double batch_us, size_t call_bytes, size_t l2_bytes) {
  const size_t between = 2 * l2_bytes / call_bytes + 1;  // calls that pass more than 2 × L2
  if (between >= kMaxColdSets) throw Failure("unsupported", "the case is too small to be measured cold");
  const int least = static_cast<int>(between) + 1;
  const int calls = static_cast<int>(std::min<double>(kMaxColdCalls, std::ceil(batch_us * 1e3 / call_ns)));
  const int graphs = (least + calls - 1) / calls;
  return {graphs * calls, calls, graphs};
}

uint64_t padding_seed(const Options& options, Regime regime) {
  return options.seed * 2 + (regime == Regime::cold ? 1 : 0);
}

// What the eager calls found out: their outputs on each distinct set, against
// which every later output is held, and the time of a call.
struct Probe {
  std::vector<std::vector<Bytes>> inputs;
  std::vector<std::vector<Bytes>> outputs;
  double call_ns = 0;
};

// The fastest of three replays of that many calls, in ns per call.
double estimate_ns(const Job& job, const CallMemory& memory, int calls, const Stream& stream, Stopwatch& watch) {
  const CallGraph graph(job.contender, job.problem, memory, 0, calls, stream);
  double fastest = INFINITY;
  for (int i = 0; i < 3; ++i) fastest = std::min(fastest, watch.replay_ns(graph, stream));
  return std::max(kMinCallNs, fastest / calls);
}

Probe probe(const Job& job, const Stream& stream, Stopwatch& watch) {
  Probe found;
  CallMemory memory(job.problem, kDistinctSets, std::nullopt, stream);
  for (int set = 0; set < kDistinctSets; ++set) {
    found.inputs.push_back(job.op.inputs(job.problem, 0, job.options.seed + set));
    memory.upload_inputs(set, found.inputs[set]);
  }
  memory.poison_outputs(kPoison);
  job.contender.prepare(job.problem, memory);
  for (int set = 0; set < kDistinctSets; ++set) job.contender.run(job.problem, memory, set, stream.get());
  stream.wait("running the kernel");
  must(cudaDeviceSynchronize(), "waiting for the device");
  for (int set = 0; set < kDistinctSets; ++set) found.outputs.push_back(memory.download_outputs(set));

  // Once with few calls, which is quick for a slow kernel, and once more with as
  // many as a batch will have, so that the cost of a replay is spread as it will be.
  found.call_ns = estimate_ns(job, memory, kDistinctSets, stream, watch);
  const int calls = plan_warm(found.call_ns, job.options.batch_us).calls;
  if (calls > kDistinctSets) found.call_ns = estimate_ns(job, memory, calls, stream, watch);
  return found;
}

// An Experiment is one regime of one job, ready to be replayed.
class Experiment {
 public:
  Experiment(const Job& job, Regime regime, const Plan& plan, const Probe& probe, const Stream& stream, Stopwatch& watch)
      : plan_(plan),
        probe_(probe),
        stream_(stream),
        watch_(watch),
        memory_(job.problem, plan.sets,
                job.options.pad ? std::optional<uint64_t>(padding_seed(job.options, regime)) : std::nullopt, stream) {
    for (int set = 0; set < plan.sets; ++set) {
      if (set < kDistinctSets) memory_.upload_inputs(set, probe.inputs[set]);
      else memory_.copy_inputs(set % kDistinctSets, set);
    }
    for (int i = 0; i < plan.graphs; ++i)
      graphs_.push_back(std::make_unique<CallGraph>(job.contender, job.problem, memory_, i * plan.calls, plan.calls, stream));
    memory_.poison_outputs(kPoison);
  }

  int kernel_nodes() const { return graphs_[0]->kernel_nodes(); }

  // Replays the next graph in turn; ns per call, to the picosecond, which is far
  // below what an event resolves.
  double replay() {
    const double ns = watch_.replay_ns(*graphs_[next_++ % graphs_.size()], stream_);
    return std::round(ns / plan_.calls * 1e3) / 1e3;
  }

  // Compares the outputs of all calls replayed so far with the eager ones.
  void verify_replayed() const { verify(static_cast<int>(std::min<size_t>(plan_.sets, next_ * plan_.calls))); }

  // Once more from poisoned outputs: what was timed computes the result itself,
  // it does not live on one that an earlier replay left.
  void verify_again() {
    memory_.poison_outputs(kPoison);
    for (const auto& graph : graphs_) must(graph->launch(stream_), "launching a graph");
    stream_.wait("replaying once more");
    verify(plan_.sets);
  }

 private:
  void verify(int sets) const {
    for (int set = 0; set < sets; ++set)
      if (memory_.download_outputs(set) != probe_.outputs[set % kDistinctSets])
        throw Failure("output_changed", "replayed calls gave other results than eager ones, first in set " + std::to_string(set));
  }

  const Plan plan_;
  const Probe& probe_;
  const Stream& stream_;
  Stopwatch& watch_;
  CallMemory memory_;
  std::vector<std::unique_ptr<CallGraph>> graphs_;
  size_t next_ = 0;
};

void warm_up(Experiment& experiment, double milliseconds) {
  const auto begin = Clock::now();
  while (std::chrono::duration<double, std::milli>(Clock::now() - begin).count() < milliseconds) experiment.replay();
}

void measure_regime(const Job& job, Regime regime, const Probe& probe, const Stream& stream, Stopwatch& watch) {
  const Options& options = job.options;
  const Plan plan = regime == Regime::warm
                        ? plan_warm(probe.call_ns, options.batch_us)
                        : plan_cold(probe.call_ns, options.batch_us, job.problem.call_bytes(), job.device.l2_bytes());
  Experiment experiment(job, regime, plan, probe, stream, watch);

  // The state is read between the two parts of the warm-up, since reading takes
  // time in which the device is idle.
  warm_up(experiment, options.warmup_ms);
  const Json before = job.device.nvml().sample();
  for (int i = 0; i < options.warmup_batches; ++i) experiment.replay();
  std::vector<double> batches;
  for (int i = 0; i < options.batches; ++i) batches.push_back(experiment.replay());
  const Json after = job.device.nvml().sample();
  experiment.verify_replayed();
  experiment.verify_again();

  Json record = job.record();
  record.field("regime", regime_name(regime)).field("calls", plan.calls).field("kernel_nodes", experiment.kernel_nodes());
  record.field("sets", plan.sets).field("batches_ns", batches).field("before", before).field("after", after);
  job.records.time(record);
}

}  // namespace

void measure(const Job& job) {
  const Stream stream;
  Stopwatch watch;
  std::optional<Probe> found;
  for (Regime regime : job.options.regimes) {
    job.records.begin(job.record().field("regime", regime_name(regime)));
    if (!found) found = probe(job, stream, watch);
    measure_regime(job, regime, *found, stream, watch);
  }
}
