// Latency. N calls are captured into a graph, rotating over several sets of
// inputs, and the graph's replay is timed; nothing is subtracted. Warm: the sets
// stay in the L2. Cold: the L2 is filled with other lines before each batch, and
// every call has a set of its own. What was timed is what is judged: its outputs
// are compared with the reference, which this process alone knows.

#include <algorithm>
#include <chrono>
#include <cmath>

#include "judge.h"
#include "units.h"

namespace {

using Clock = std::chrono::steady_clock;

// Calls on fresh data, each set being used once, may take so many times as long as the
// calls of the batches. Calls that take longer show that the calls of a batch do less
// than calls do by themselves.
constexpr double kFreshRatio = 1.3;
// A single call may take longer than one in a row of calls: by this ratio, and by the
// time that its launch and its last blocks take, which a row of calls hides.
constexpr double kSingleRatio = 1.5, kSingleSlackNs = 4000;
// A batch may be longer by the device's events than by the host's clock by the first of
// these. By the host's clock it is longer, since waiting takes time: in the batch where
// the two are closest, by at most the second and this share of the shortest batch.
constexpr double kEventSlackNs = 20000, kHostSlackNs = 300000, kHostShare = 0.5;

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

void want_right(const Job& job, const Golden& golden, const unsigned char* outputs, const std::string& where) {
  const std::vector<std::string> why = distance(job.op, job.options, job.problem, golden, outputs).reasons(job.options.tolerance);
  if (!why.empty()) throw Failure("wrong_when_timed", "the timed calls gave a wrong result " + where + ": " + why[0]);
}

void want_unchanged(const Findings& found) {
  if (found.inputs > 0) throw Failure("output_changed", "an input was written while calls were timed");
  if (found.before + found.after > 0) throw Failure("output_changed", "memory beside a tensor was written while calls were timed");
  if (found.others > 0) throw Failure("output_changed", "batches on the same inputs gave other results");
}

// The events must agree with the clocks of this process and of the worker, as far
// as these can tell.
void want_plausible(const std::vector<double>& batches_ns, const std::vector<double>& host_ns, int calls, double wall_ns, double warmup_ns) {
  double sum = warmup_ns, closest = INFINITY, shortest = INFINITY;
  for (size_t i = 0; i < batches_ns.size(); ++i) {
    const double batch = batches_ns[i] * calls;
    sum += batch;
    if (i < host_ns.size() && batch > host_ns[i] + kEventSlackNs)
      throw Failure("clocks", "a batch took longer by the device's events than by the host's clock");
    if (i < host_ns.size()) closest = std::min(closest, host_ns[i] - batch);
    shortest = std::min(shortest, batch);
  }
  if (sum > wall_ns) throw Failure("too_fast", "the times came sooner than warm-up and batches take");
  if (closest > kHostSlackNs + kHostShare * shortest)
    throw Failure("clocks", "all batches took far longer by the host's clock than by the device's events");
}

// One regime, timed on four images. The record is sent when all else is known.
struct Timed {
  Regime regime;
  std::vector<double> batches_ns;
  Json record;
};

std::vector<const Golden*> ordinary(const Job& job, int first, int count) {
  std::vector<const Golden*> images;
  for (int slot = first; slot < first + count; ++slot) images.push_back(&job.golden(0, slot));
  return images;
}

// A batch is cold if its calls take about as long as one call after a flush. It is not
// cold if a call finds in the L2 what the call before it has loaded.
void want_cold(const Job& job, Timed& timed) {
  const double single = job.worker.ask(Request::single, Message().put(timed.regime)).get<double>();
  const double batch = median(timed.batches_ns);
  timed.record.field("single_ns", std::round(single * 1e3) / 1e3);
  if (batch < single / kSingleRatio - kSingleSlackNs)
    throw Failure("unsteady", "cold calls take " + std::to_string(batch) + " ns in the batches and " + std::to_string(single) +
                                  " ns by themselves after a flush: the batches are not cold");
}

Timed time_regime(const Job& job, Regime regime, const Staged& staged) {
  const Options& o = job.options;
  const std::vector<const Golden*> images = ordinary(job, 0, std::min(kMostImages, staged.plan.sets));
  load(job, images);
  const auto begin = Clock::now();
  Message answer = job.worker.ask(Request::time, Message().put(regime).put(o.warmup_ms).put(o.warmup_batches).put(o.batches));
  const double wall_ns = std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
  Timed timed{regime, answer.list<double>(), job.record()};
  const std::vector<double> host_ns = answer.list<double>(), sm_mhz = answer.list<double>();
  const std::string before = answer.text(), after = answer.text();
  job.records.spend("nvml", std::chrono::duration<double, std::milli>(answer.get<double>()));
  want_plausible(timed.batches_ns, host_ns, staged.plan.calls, wall_ns, o.warmup_ms * 1e6);
  want_unchanged(findings(answer));
  const unsigned char* outputs = job.worker.shared(0);
  for (size_t i = 0; i < images.size(); ++i)
    want_right(job, *images[i], outputs + i * job.problem.all_outputs(), std::string("in ") + regime_name(regime) + " batches");
  if (job.problem.repeatable)
    for (int k = 0; k < 2; ++k) all_alone(job, regime, static_cast<int>(std::random_device{}() % static_cast<unsigned>(staged.plan.sets)));
  timed.record.field("regime", regime_name(regime)).field("calls", staged.plan.calls).field("kernel_nodes", staged.kernel_nodes);
  timed.record.field("sets", staged.plan.sets).field("batches_ns", timed.batches_ns).field("sm_mhz", sm_mhz);
  timed.record.verbatim("before", before).verbatim("after", after);
  if (regime == Regime::cold) want_cold(job, timed);
  return timed;
}

// fresh replays a timed graph once, with only the first call on each set switched on, on
// inputs that the kernel has not seen. It returns the time of a call in ns.
double fresh(const Job& job, Regime regime, const Golden& golden, const std::string& where) {
  Message answer = job.worker.ask(Request::fresh, Message().put(regime));
  want_right(job, golden, job.worker.shared(0), where);
  return answer.get<double>();
}

void want_same_on_fresh_data(const Job& job, std::vector<Timed>& all) {
  std::vector<double> fastest(all.size(), INFINITY);
  for (int slot = kMostImages; slot < kMostImages + 2; ++slot) {
    const Golden& golden = job.data.golden(job.problem, 0, slot);
    load(job, {&golden});
    for (size_t i = 0; i < all.size(); ++i) fastest[i] = std::min(fastest[i], fresh(job, all[i].regime, golden, "on fresh inputs"));
  }
  for (size_t i = 0; i < all.size(); ++i) {
    const double ratio = fastest[i] / median(all[i].batches_ns);
    all[i].record.field("fresh_ns", std::round(fastest[i] * 1e3) / 1e3);
    if (!(ratio <= kFreshRatio))
      throw Failure("unsteady", std::string(regime_name(all[i].regime)) + " calls on fresh inputs take " + std::to_string(ratio) + " times as long as in the batches");
  }
}

void want_right_on_other_classes(const Job& job, const std::vector<Timed>& all) {
  for (int input_class : other_classes(job)) {
    const Golden& golden = job.data.golden(job.problem, input_class, 0);
    load(job, {&golden});
    for (const Timed& timed : all) (void)fresh(job, timed.regime, golden, "on inputs of class " + job.op.class_name(input_class));
  }
}

}  // namespace

void measure(const Job& job) {
  std::optional<Stages> stages;
  std::vector<Timed> all;
  for (Regime regime : job.options.regimes) {
    job.records.begin(job.record().field("regime", regime_name(regime)));
    if (!stages) stages = set_up(job);
    const Staged& staged = (*stages)[regime];
    if (staged.plan.calls == 0) {
      job.records.absent(job.record().field("regime", regime_name(regime)).field("reason", staged.plan.absent));
      continue;
    }
    all.push_back(time_regime(job, regime, staged));
  }
  want_same_on_fresh_data(job, all);
  want_right_on_other_classes(job, all);
  for (const Timed& timed : all) job.records.time(timed.record);
}
