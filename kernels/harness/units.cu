#include "units.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <numeric>
#include <random>

#include "beating.h"

const Golden& Job::golden(int input_class, int slot) const {
  const Beating beating(records);
  const auto begin = std::chrono::steady_clock::now();
  const Golden& found = data.golden(problem, input_class, slot);
  records.spend("data", std::chrono::steady_clock::now() - begin);
  return found;
}

Stages set_up(const Job& job) {
  const Options& o = job.options;
  const auto given = [&](const char* regime) {
    const auto calls = o.calls.find(job.kernel.id + "@" + job.problem.name + "/" + regime);
    return calls == o.calls.end() ? 0 : calls->second;
  };
  const auto named_in = [&](const std::vector<std::string>& list) { return std::find(list.begin(), list.end(), job.kernel.id) != list.end(); };
  StageOrder order{job.problem, std::random_device{}(), o.batch_us, {given("warm"), given("cold")}, named_in(o.pdl)};
  Message message;
  message.put(job.kernel.id).put(job.kernel.path).put(named_in(o.references));
  order.put(message);
  Message answer = job.worker.ask(Request::stage, message);
  Stages stages;
  for (Staged& staged : stages.regimes) {
    staged.plan.calls = answer.get<int>();
    staged.plan.sets = answer.get<int>();
    staged.plan.absent = answer.text();
    staged.kernel_nodes = answer.get<int>();
    staged.launches = answer.list<uint32_t>();
  }
  return stages;
}

void load(const Job& job, const std::vector<const Golden*>& images) {
  const size_t bytes = job.problem.all_inputs();
  unsigned char* to = job.worker.shared(std::max(images.size() * bytes, kMostImages * job.problem.all_outputs()));
  for (const Golden* golden : images)
    for (const Bytes& input : golden->inputs) to = std::copy(input.begin(), input.end(), to);
  (void)job.worker.ask(Request::load, Message().put(static_cast<int>(images.size())));
}

Findings findings(Message& answer) {
  Findings found;
  found.inputs = answer.get<uint64_t>();
  found.before = answer.get<uint64_t>();
  found.after = answer.get<uint64_t>();
  found.others = answer.get<uint64_t>();
  found.other_set = answer.get<int>();
  return found;
}

// The calls on one set are switched off, and all others run as before. The outputs of
// the set must keep their poison, and the others must give the same results as before.
// If others differ, this is tried once more, with other poison. A kernel whose calls use
// the work of the set differs both times. A library whose results differ once in some
// hundred tries does not, so it passes, and a note says what happened. In the second try
// each launch holds only calls that lie between two calls which are switched off, so no
// call depends on another one across a gap.
void all_alone(const Job& job, Regime regime, int set) {
  const std::string off = "with the calls on set " + std::to_string(set) + " switched off";
  for (bool again = false;; again = true) {
    Message answer = job.worker.ask(Request::skip, Message().put(regime).put(set).put(again));
    const Findings found = findings(answer);
    if (found.after > 0) throw Failure("not_alone", off + ", its outputs were written all the same: other calls do its work");
    if (found.others == 0) return;
    const std::string what = std::to_string(found.others) + " words differ, the first of them on set " + std::to_string(found.other_set);
    if (again) throw Failure("not_alone", off + ", others gave other results, twice: they live on its work (" + what + ")");
    std::fprintf(stderr, "gate-harness: %s on %s, %s: %s, others gave other results: %s; tried again\n", job.kernel.id.c_str(), job.problem.name.c_str(),
                 regime_name(regime), off.c_str(), what.c_str());
  }
}

std::vector<int> other_classes(const Job& job) {
  std::vector<int> others(static_cast<size_t>(job.op.classes() - 1));
  std::iota(others.begin(), others.end(), 1);
  const size_t choice = job.options.seed + std::hash<std::string>{}(job.kernel.id + "@" + job.problem.name);
  std::shuffle(others.begin(), others.end(), std::mt19937_64(choice));
  others.resize(std::min<size_t>(2, others.size()));
  return others;
}

// The images of a case of which some rows are compared take gigabytes all together, and
// no file holds them. In a check they are computed one after the other, and where such
// a case is timed, those are computed now that every stage needs: with one set there is
// one image in the batches.
void preload(const Job& job) {
  const bool timed = job.options.mode == Mode::time;
  if (!timed && job.problem.sampled()) return;
  const Beating beating(job.records);
  for (int slot = 0; slot < (timed ? kMostImages + 2 : 1); slot += job.problem.sampled() && slot == 0 ? kMostImages : 1) (void)job.data.golden(job.problem, 0, slot);
  if (timed)
    for (int input_class : other_classes(job)) (void)job.data.golden(job.problem, input_class, 0);
  if (job.options.mode == Mode::check)
    for (int input_class = 1; input_class < job.op.classes(); ++input_class) (void)job.data.golden(job.problem, input_class, 0);
}
