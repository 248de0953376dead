// Correctness. The timed graphs are replayed on every input class, several times;
// everything that could be left over from before (outputs, guard bands, shared
// memory, registers) differs between the attempts, and so does what runs before
// and beside the kernel, so that nothing is right by luck.

#include <algorithm>
#include <cmath>

#include "judge.h"
#include "units.h"

namespace {

// Bands are NaN in every type of this header's; poison is once NaN and then values
// that nobody can tell from results.
struct Try {
  Setting setting;
  Pattern bands, poison;
};
constexpr Try kTries[] = {
    {Setting::plain, {0, 0xFF}, {0, 0xFF}},
    {Setting::after_producer, {0, 0x7F}, {0x51ED5EED, 0}},
    {Setting::beside_stream, {0, 0xFF}, {0x0DDBA11, 0}},
};

// What the attempts on one class left behind.
struct Outcome {
  Distance distance;
  uint64_t unwritten = 0;
  Findings found;
  bool repeatable = true;
};

// An element is unwritten when it holds the poison of each attempt. The pattern
// starts anew with every output.
uint64_t count_unwritten(const Job& job, const std::vector<Bytes>& outputs) {
  uint64_t count = 0;
  size_t start = 0;
  for (size_t o = 0; o < job.problem.output_bytes.size(); ++o) {
    const size_t width = job.op.element_bytes(static_cast<int>(o));
    for (size_t at = 0; at < job.problem.output_bytes[o] && job.problem.held_in[o] < 0; at += width) {
      bool poison = true;
      for (size_t t = 0; t < outputs.size() && poison; ++t)
        for (size_t i = 0; i < width && poison; ++i) poison = outputs[t][start + at + i] == pattern_byte(kTries[t].poison, at + i);
      count += poison;
    }
    start += job.problem.output_bytes[o];
  }
  return count;
}

Outcome attempt_all(const Job& job, const Golden& golden) {
  Outcome outcome;
  std::vector<Bytes> outputs;
  for (const Try& attempt : kTries) {
    Message message;
    message.put(attempt.setting).put(attempt.bands.seed).put(attempt.bands.byte).put(attempt.poison.seed).put(attempt.poison.byte);
    Message answer = job.worker.ask(Request::attempt, message);
    const Findings found = findings(answer);
    outcome.found.inputs += found.inputs;
    outcome.found.before += found.before;
    outcome.found.after += found.after;
    outcome.found.others += found.others;
    const unsigned char* from = job.worker.shared(0);
    outputs.emplace_back(from, from + job.problem.all_outputs());
    if (outputs.size() > 1 && outputs.back() == outputs.front()) continue;
    const Distance distance_now = distance(job.op, job.options, job.problem, golden, outputs.back().data());
    const bool worse = distance_now.nonfinite + distance_now.mismatched > outcome.distance.nonfinite + outcome.distance.mismatched ||
                       !(distance_now.relative_error <= outcome.distance.relative_error);
    if (outputs.size() == 1 || worse) outcome.distance = distance_now;
    if (outputs.size() == 1) continue;
    if (job.problem.repeatable) outcome.repeatable = false;
    else if (job.options.tolerance.between_runs > 0)
      outcome.repeatable &= relative_change(job.op, job.problem, outputs.front().data(), outputs.back().data()) <= job.options.tolerance.between_runs;
  }
  outcome.unwritten = count_unwritten(job, outputs);
  outcome.repeatable &= outcome.found.others == 0;
  return outcome;
}

const char* guard(const Findings& found) { return found.before > 0 ? "before" : found.after > 0 ? "after" : "ok"; }

std::vector<std::string> reasons(const Job& job, const Outcome& o) {
  std::vector<std::string> why;
  if (o.unwritten > 0) why.push_back(std::to_string(o.unwritten) + " of " + std::to_string(o.distance.elements) + " elements were not written");
  for (const std::string& reason : o.distance.reasons(job.options.tolerance)) why.push_back(reason);
  if (o.found.before + o.found.after > 0) why.push_back(std::string("memory ") + guard(o.found) + " a tensor was written");
  if (o.found.inputs > 0) why.push_back("an input was written");
  if (!o.repeatable) why.push_back("two runs on the same inputs differ");
  return why;
}

Json to_json(const Job& job, int input_class, const Golden& golden, const Outcome& o) {
  const std::vector<std::string> why = reasons(job, o);
  Json record = job.record();
  record.field("class", job.op.class_name(input_class)).field("seed", golden.seed).field("elements", o.distance.elements);
  if (job.problem.rows > 0) {
    record.field("rows", job.problem.sampled() ? golden.rows.size() : static_cast<uint64_t>(job.problem.all_rows));
    record.field("all_rows", static_cast<uint64_t>(job.problem.all_rows));
  }
  record.field("relative_error", o.distance.relative_error).field("max_abs_error", o.distance.max_abs_error);
  record.field("max_abs_index", o.distance.max_abs_index).field("nonfinite", o.distance.nonfinite);
  record.field("mismatched", o.distance.mismatched).field("unwritten", o.unwritten);
  record.field("guard", guard(o.found)).field("inputs_changed", o.found.inputs > 0).field("repeatable", o.repeatable);
  return record.field("status", why.empty() ? "pass" : "fail").field("reasons", why);
}

}  // namespace

void check(const Job& job) {
  std::optional<Stages> stages;
  for (int input_class = 0; input_class < job.op.classes(); ++input_class) {
    job.records.begin(job.record().field("class", job.op.class_name(input_class)));
    if (!stages) stages = set_up(job);
    job.data.forget(job.problem);
    const Golden& golden = job.golden(input_class, 0);
    load(job, {&golden});
    const Outcome outcome = attempt_all(job, golden);
    job.records.check(to_json(job, input_class, golden, outcome));
    // Of a kernel whose results are wrong or vary there is nothing to compare.
    if (input_class != 0 || !reasons(job, outcome).empty()) continue;
    const Regime regime = stages->checked();
    for (int set = 0; set < std::min(kMostImages, (*stages)[regime].plan.sets); ++set) all_alone(job, regime, set);
  }
}
