#include "stage.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "failure.h"

namespace {

constexpr int kDistinctSets = kMostImages;  // sets with data of their own; others are copies
constexpr int kMaxWarmCalls = 4096, kMaxColdCalls = 256;
constexpr int kSingles = 5;
constexpr double kMinCallNs = 100;  // below any kernel: keeps the number of calls finite
constexpr uint64_t kProducerNs = 30000, kBesideNs = 300000;
enum Counter { kInputs, kBefore, kAfter, kOthers, kCounters };

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

bool all_calls(int) { return true; }

int limited(double calls, int most) { return std::max(1, static_cast<int>(std::min<double>(most, std::ceil(calls)))); }

}  // namespace

void StageOrder::put(Message& message) const {
  problem.put(message);
  message.put(padding_seed).put(batch_us).put(calls[0]).put(calls[1]).put(programmatic);
}

StageOrder StageOrder::get(Message& message) {
  StageOrder o{Problem::get(message), message.get<uint64_t>(), message.get<double>(), {0, 0}, false};
  o.calls[0] = message.get<int>();
  o.calls[1] = message.get<int>();
  o.programmatic = message.get<bool>();
  return o;
}

Stage::Stage(Device& device, Contender& contender, StageOrder order, std::function<void()> alive)
    : device_(device),
      contender_(contender),
      order_(std::move(order)),
      problem_(order_.problem),
      alive_(std::move(alive)),
      last_beat_(Clock::now()),
      scratch_(device.flushing()),
      scratch_bytes_(device.flushing_bytes()),
      random_(order_.padding_seed) {
  device_.restore_limits();
  estimate();
  make_plans();
  capture();
  // The kernel's host code does not run any more: what it asked of the L2 ends here,
  // for the harness's own work in this stream as well.
  device_.drop_persisting_lines();
  stream_.forget_window();
}

// The time of a call, measured on memory without data: first with few calls,
// which is quick for a slow kernel, then with as many as a batch may have, so that
// the cost of a replay is spread as it will be. Where the number of calls is given,
// the kernel runs once, for libraries that allocate in their first call.
void Stage::estimate() {
  CallMemory memory(problem_, 1, order_.padding_seed, stream_);
  memory.clear();
  stream_.wait("clearing memory");
  contender_.prepare(problem_, memory);
  contender_.run(problem_, memory, 0, stream_.get());
  must(cudaDeviceSynchronize(), "running the kernel");
  beat();
  if (order_.calls[0] > 0 && order_.calls[1] > 0) return;
  call_ns_ = replay_ns(memory, kDistinctSets);
  const int calls = limited(order_.batch_us * 1e3 / call_ns_, kMaxWarmCalls);
  if (calls > kDistinctSets) call_ns_ = replay_ns(memory, calls);
}

// The fastest of three replays, in ns per call.
double Stage::replay_ns(CallMemory& memory, int calls) {
  const CallGraph graph(contender_, problem_, memory, {calls, 1, order_.programmatic}, stream_);
  double fastest = INFINITY;
  for (int i = 0; i < 3; ++i) {
    fastest = std::min(fastest, watch_.replay(graph, stream_).device_ns);
    beat();
  }
  return std::max(kMinCallNs, fastest / calls);
}

void Stage::make_plans() {
  const double wanted = call_ns_ > 0 ? order_.batch_us * 1e3 / call_ns_ : 1;
  const size_t call_bytes = problem_.call_bytes();
  const size_t half_cache = device_.l2_bytes() / 2, room = device_.free_bytes() / 2;
  // Warm: all sets together stay in half of the L2. Of an op that works in place,
  // every call of a batch has a set of its own.
  const size_t fitting = half_cache / call_bytes;
  Plan& warm = plans_[0];
  if (fitting == 0) {
    warm.absent = "the tensors of one call take more than half of the L2: they cannot be warm";
  } else {
    warm.calls = order_.calls[0] > 0 ? order_.calls[0] : limited(wanted, kMaxWarmCalls);
    const int most_sets = static_cast<int>(std::min<size_t>(fitting, kMaxWarmCalls));
    if (problem_.in_place()) warm.calls = std::min(warm.calls, most_sets);
    warm.sets = problem_.in_place() ? warm.calls : std::min(kDistinctSets, most_sets);
    warm.calls = (warm.calls + warm.sets - 1) / warm.sets * warm.sets;
  }
  // Cold: lines of a buffer twice as large as the L2 are read before each batch, and
  // every call has a set of its own.
  Plan& cold = plans_[1];
  const size_t holding = room / CallMemory::most_bytes(problem_);
  if (holding < 1) throw Failure("memory", "the device has no memory for the tensors of case " + problem_.name);
  const int most_cold = static_cast<int>(std::min<size_t>(holding, kMaxColdCalls));
  cold.calls = order_.calls[1] > 0 ? std::min(order_.calls[1], most_cold) : limited(wanted, most_cold);
  cold.sets = cold.calls;
}

void Stage::capture() {
  const int sets = std::max(plans_[0].sets, plans_[1].sets);
  memory_ = std::make_unique<CallMemory>(problem_, sets, order_.padding_seed + 1, stream_);
  most_images_ = std::min(kDistinctSets, sets);
  images_.allocate(static_cast<size_t>(most_images_) * problem_.all_inputs());
  expected_.allocate(static_cast<size_t>(most_images_) * problem_.all_outputs());
  counters_.allocate(kCounters * sizeof(unsigned long long));
  stamps_.allocate(2 * sizeof(Stamp));
  memory_->clear();
  stream_.wait("clearing memory");
  for (Regime regime : {Regime::warm, Regime::cold}) {
    const Plan& plan = plans_[index(regime)];
    if (plan.calls > 0)
      graphs_[index(regime)] = std::make_unique<CallGraph>(contender_, problem_, *memory_, CallGraph::Shape{plan.calls, plan.sets, order_.programmatic}, stream_);
    beat();
  }
  const auto produce = [this] {
    const unsigned char* image = static_cast<unsigned char*>(images_.get());
    for (size_t i = 0; i < problem_.input_bytes.size(); ++i) {
      must(enqueue_slow_copy(image, memory_->inputs(0)[i], problem_.input_bytes[i], kProducerNs, stream_.get()), "enqueueing a producer");
      image += problem_.input_bytes[i];
    }
  };
  after_producer_ = std::make_unique<CallGraph>(
      contender_, problem_, *memory_,
      CallGraph::Shape{1, 1, order_.programmatic, static_cast<int>(problem_.input_bytes.size()), produce}, stream_);
}

void Stage::beat() {
  if (seconds_since(last_beat_) < 1) return;
  last_beat_ = Clock::now();
  alive_();
}

Pattern Stage::fresh_poison() {
  random_ = random_ * 6364136223846793005u + 1442695040888963407u;
  return {static_cast<uint32_t>(random_ >> 33) | 1, 0};
}

void Stage::load(const unsigned char* images, int count) {
  if (count < 1) throw Failure("tool", "no inputs were sent");
  image_count_ = std::min(count, most_images_);
  const size_t bytes = static_cast<size_t>(image_count_) * problem_.all_inputs();
  must(cudaMemcpyAsync(images_.get(), images, bytes, cudaMemcpyHostToDevice, stream_.get()), "copying inputs to the device");
  stream_.wait("copying inputs to the device");
  beat();
}

// Everything as it must be before a replay, but for the poison.
void Stage::lay_out(const Pattern& bands, int sets) {
  bands_ = bands;
  memory_->cover(bands);
  for (int set = 0; set < sets; ++set)
    memory_->copy_inputs(static_cast<unsigned char*>(images_.get()) + static_cast<size_t>(set % image_count_) * problem_.all_inputs(), set);
  memory_->poison_workspace(fresh_poison());
}

// Poisons the outputs of a graph's calls, and gives inputs that are worked on in
// place their values back.
void Stage::poison(const Pattern& pattern, const CallGraph& graph) {
  for (int set = 0; set < graph.sets(); ++set) {
    if (problem_.in_place())
      memory_->copy_inputs(static_cast<unsigned char*>(images_.get()) + static_cast<size_t>(set % image_count_) * problem_.all_inputs(), set);
    memory_->poison_outputs(pattern, set);
  }
  graph.results().poison(pattern, stream_.get());
}

void Stage::clear_counters() {
  must(cudaMemsetAsync(counters_.get(), 0, kCounters * sizeof(unsigned long long), stream_.get()), "clearing counters");
}

// What the sets hold now is what every later replay must give.
void Stage::expect(int sets) {
  for (int i = 0; i < std::min(sets, image_count_); ++i)
    memory_->copy_outputs(i, static_cast<unsigned char*>(expected_.get()) + static_cast<size_t>(i) * problem_.all_outputs());
}

uint64_t Stage::counted(int counter) {
  unsigned long long values[kCounters];
  must(cudaMemcpyAsync(values, counters_.get(), sizeof values, cudaMemcpyDeviceToHost, stream_.get()), "reading counters");
  stream_.wait("reading counters");
  return values[counter];
}

void Stage::compare(int sets, int left_out) {
  if (!problem_.repeatable) return;
  for (int set = 0; set < sets; ++set)
    if (set != left_out) compare_one(set);
}

void Stage::compare_one(int set) {
  const unsigned char* expected = static_cast<unsigned char*>(expected_.get()) + static_cast<size_t>(set % image_count_) * problem_.all_outputs();
  memory_->count_other_outputs(expected, set, static_cast<unsigned long long*>(counters_.get()) + kOthers);
}

// The first set whose outputs are not as expected; -1 where all are.
int Stage::first_other(int sets, int left_out) {
  for (int set = 0; set < sets; ++set) {
    if (set == left_out) continue;
    clear_counters();
    compare_one(set);
    if (counted(kOthers) > 0) return set;
  }
  return -1;
}

// Inputs of all sets, and the bands.
void Stage::inspect(int sets, Findings& found) {
  unsigned long long* counters = static_cast<unsigned long long*>(counters_.get());
  for (int set = 0; set < sets; ++set)
    memory_->count_changed_inputs(static_cast<unsigned char*>(images_.get()) + static_cast<size_t>(set % image_count_) * problem_.all_inputs(), set, counters + kInputs);
  memory_->count_broken_bands(bands_, sets, counters + kBefore, counters + kAfter);
  found.inputs = counted(kInputs);
  found.before = counted(kBefore);
  found.after = counted(kAfter);
  found.others = counted(kOthers);
}

void Stage::download(unsigned char* outputs, int images) {
  must(cudaMemcpyAsync(outputs, expected_.get(), static_cast<size_t>(images) * problem_.all_outputs(), cudaMemcpyDeviceToHost, stream_.get()),
       "copying outputs from the device");
  stream_.wait("copying outputs from the device");
}

Findings Stage::attempt(const Attempt& attempt, unsigned char* outputs) {
  const bool alone = attempt.setting == Setting::after_producer;
  CallGraph& graph = alone ? *after_producer_ : *graphs_[index(checked())];
  const int sets = alone ? 1 : graph.sets();
  uint32_t* sink = static_cast<uint32_t*>(scratch_.get()) + scratch_bytes_ / 4;
  clear_counters();
  lay_out(attempt.bands, sets);
  poison(attempt.poison, graph);
  if (alone) memory_->poison_inputs(attempt.poison, 0);
  must(enqueue_dirty(static_cast<uint32_t>(random_), device_.multiprocessors(), device_.shared_bytes(), sink, stream_.get()), "dirtying registers");
  stream_.wait("laying out memory");
  if (attempt.setting == Setting::beside_stream) must(enqueue_busy(kBesideNs, sink, other_stream_.get()), "enqueueing work beside");
  must(graph.launch(stream_), "launching a graph");
  stream_.wait("running the kernel");
  must(cudaDeviceSynchronize(), "waiting for the device");
  beat();
  Findings found;
  graph.results().collect(*memory_, all_calls, stream_.get());
  expect(sets);
  compare(sets);
  inspect(sets, found);
  download(outputs, alone ? 1 : std::min(sets, image_count_));
  beat();
  return found;
}

void Stage::flush(Regime regime) {
  if (regime == Regime::warm) return;
  device_.reset_persisting_lines();
  uint32_t* sink = static_cast<uint32_t*>(scratch_.get()) + scratch_bytes_ / 4;
  must(enqueue_read(static_cast<unsigned char*>(scratch_.get()), scratch_bytes_, sink, stream_.get()), "flushing the L2");
}

// The clock between the two stamps, in MHz.
double Stage::clock_mhz() {
  Stamp stamps[2];
  must(cudaMemcpyAsync(stamps, stamps_.get(), sizeof stamps, cudaMemcpyDeviceToHost, stream_.get()), "reading the clock");
  stream_.wait("reading the clock");
  return std::round(clock_between(stamps[0], stamps[1]) * 10) / 10;
}

Times Stage::time(Regime regime, double warmup_ms, int warmup_batches, int batches, unsigned char* outputs) {
  CallGraph& graph = *graphs_[index(regime)];
  Stamp* stamps = static_cast<Stamp*>(stamps_.get());
  Times times;
  lay_out(bands_, graph.sets());
  clear_counters();
  const auto batch = [&] {
    poison(fresh_poison(), graph);
    flush(regime);
    must(enqueue_stamp(stamps, stream_.get()), "reading the clock");
    stream_.wait("laying out memory");  // what comes before a batch is no part of it
    const Reading reading = watch_.replay(graph, stream_);
    must(enqueue_stamp(stamps + 1, stream_.get()), "reading the clock");
    graph.results().collect(*memory_, all_calls, stream_.get());
    beat();
    return reading;
  };
  const auto sample = [&] {
    const auto begin = Clock::now();
    std::string state = device_.nvml().sample().text();
    times.sampling_ms += seconds_since(begin) * 1e3;
    return state;
  };
  (void)batch();
  expect(graph.sets());
  compare(graph.sets());
  const auto begin = Clock::now();
  while (seconds_since(begin) * 1e3 < warmup_ms) {
    if (problem_.in_place()) poison(fresh_poison(), graph);
    (void)watch_.replay(graph, stream_);
    beat();
  }
  // The state is read between the two parts of the warm-up, since reading takes
  // time in which the device is idle.
  times.before = sample();
  for (int i = 0; i < warmup_batches; ++i) {
    (void)batch();
    compare(graph.sets());
  }
  for (int i = 0; i < batches; ++i) {
    const Reading reading = batch();
    times.batches_ns.push_back(std::round(reading.device_ns / graph.calls() * 1e3) / 1e3);  // an event resolves far less
    times.host_ns.push_back(reading.host_ns);
    times.sm_mhz.push_back(clock_mhz());
    compare(graph.sets());
  }
  times.after = sample();
  inspect(graph.sets(), times.found);
  if (!problem_.repeatable) expect(graph.sets());
  download(outputs, std::min(graph.sets(), image_count_));
  return times;
}

// One replay of those calls of a graph that are on, as warm or cold as they are in a
// batch. Of those that are to be warm, none comes after the first on each set.
double Stage::replay_some(Regime regime, const std::function<bool(int)>& on) {
  CallGraph& graph = *graphs_[index(regime)];
  uint32_t* sink = static_cast<uint32_t*>(scratch_.get()) + scratch_bytes_ / 4;
  graph.enable(on);
  flush(regime);
  if (regime == Regime::warm)
    for (int set = 0; set < graph.sets(); ++set)
      if (on(set)) memory_->read_inputs(set, device_.multiprocessors(), sink);
  must(enqueue_busy(20000, sink, stream_.get()), "waking the device");  // it was idle while data came
  stream_.wait("laying out memory");
  const double ns = watch_.replay(graph, stream_).device_ns;
  graph.results().collect(*memory_, on, stream_.get());
  graph.enable(all_calls);
  beat();
  return ns;
}

// What a replay takes besides its calls, and more for its first than for others,
// is told by a replay of one call.
double Stage::fresh(Regime regime, unsigned char* outputs) {
  const int sets = graphs_[index(regime)]->sets();
  lay_out(bands_, sets);
  poison(fresh_poison(), *graphs_[index(regime)]);
  const double all = replay_some(regime, [sets](int call) { return call < sets; });
  expect(sets);
  clear_counters();
  compare(sets);
  if (counted(kOthers) > 0) throw Failure("output_changed", "calls on the same inputs gave other results");
  download(outputs, std::min(sets, image_count_));
  if (sets == 1) return all;
  return std::max(0.0, (all - replay_some(regime, [](int call) { return call == 0; })) / (sets - 1));
}

// Calls at several places of the graph.
double Stage::single(Regime regime) {
  CallGraph& graph = *graphs_[index(regime)];
  std::vector<double> took;
  poison(fresh_poison(), graph);
  for (int i = 0; i < kSingles; ++i) {
    const int chosen = (2 * i + 1) * graph.calls() / (2 * kSingles);
    const double with = replay_some(regime, [chosen](int call) { return call == chosen; });
    took.push_back(with - replay_some(regime, [](int) { return false; }));
  }
  std::nth_element(took.begin(), took.begin() + kSingles / 2, took.end());
  return took[kSingles / 2];
}

Findings Stage::skip(Regime regime, int set, bool apart) {
  CallGraph& graph = *graphs_[index(regime)];
  const int sets = graph.sets();
  const auto others = [&](int call) { return call % sets != set; };
  unsigned long long* counters = static_cast<unsigned long long*>(counters_.get());
  const Pattern pattern = fresh_poison();
  clear_counters();
  poison(pattern, graph);
  if (apart) replay_apart(graph, set);
  else replay_at_once(graph, others);
  graph.results().collect(*memory_, others, stream_.get());
  Findings found;
  memory_->count_written_outputs(pattern, set, counters + kAfter);
  compare(sets, set);
  found.after = counted(kAfter);
  found.others = counted(kOthers);
  if (found.others > 0) found.other_set = first_other(sets, set);
  graph.enable(all_calls);
  beat();
  return found;
}

void Stage::replay_at_once(CallGraph& graph, const std::function<bool(int)>& on) {
  graph.enable(on);
  must(graph.launch(stream_), "launching a graph");
  stream_.wait("running the kernel");
}

// Replays what lies between two calls on a set that is switched off by itself, one
// launch after the other, so that no call depends on another through nodes that are
// switched off.
void Stage::replay_apart(CallGraph& graph, int set) {
  const int sets = graph.sets();
  for (int off = set - sets; off < graph.calls(); off += sets) {
    replay_at_once(graph, [&](int call) { return call > off && call < off + sets; });
    beat();
  }
}

void Stage::ready_call() {
  lay_out(bands_, 1);
  stream_.wait("laying out memory");
}

void Stage::call() {
  contender_.run(problem_, *memory_, 0, stream_.get());
  stream_.wait("running one call");
}
