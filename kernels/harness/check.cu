// Correctness. A kernel runs twice on the same inputs; everything that could be
// left over from before (outputs, guard bands) differs between the two runs, so
// that nothing is right by luck.

#include <cmath>
#include <cstdio>
#include <cstring>

#include "graph.h"
#include "units.h"

namespace {

// A Pattern is what memory holds before one run. Poison and input bands are NaN
// in FP16 both times and NaN or huge in the wider types: what a kernel reads
// beyond its inputs, or leaves unwritten, shows in the result.
struct Pattern {
  unsigned char poison, input_band, output_band;
};
constexpr Pattern kPatterns[2] = {{0xFF, 0xFF, 0xC5}, {0x7F, 0x7E, 0x3A}};

// What one run left behind.
struct Attempt {
  std::vector<Bytes> outputs;
  bool inputs_changed = false;
  bool before_touched = false;
  bool after_touched = false;
};

struct Verdict {
  uint64_t elements = 0, nonfinite = 0, unwritten = 0;
  double relative_error = 0, max_abs_error = 0;
  uint64_t max_abs_index = 0;  // over all outputs, one after the other
  const char* guard = "ok";
  bool inputs_changed = false, repeatable = true;
};

// The whole allocation as it must look before the run.
Bytes lay_out(const CallMemory& memory, const std::vector<Bytes>& inputs, const Pattern& pattern) {
  Bytes image(memory.size(), pattern.output_band);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const CallMemory::Span span = memory.inputs(0)[i];
    std::memset(image.data() + span.offset - CallMemory::kGuard, pattern.input_band, span.bytes + 2 * CallMemory::kGuard);
    std::memcpy(image.data() + span.offset, inputs[i].data(), span.bytes);
  }
  for (const CallMemory::Span& span : memory.outputs(0)) std::memset(image.data() + span.offset, pattern.poison, span.bytes);
  return image;
}

bool differs(const Bytes& a, const Bytes& b, size_t offset, size_t bytes) {
  return std::memcmp(a.data() + offset, b.data() + offset, bytes) != 0;
}

// Compares everything but the outputs with what was there before.
void inspect(const CallMemory& memory, const Bytes& before, const Bytes& after, Attempt& attempt) {
  const auto bands = [&](const CallMemory::Span& span) {
    attempt.before_touched |= differs(before, after, span.offset - CallMemory::kGuard, CallMemory::kGuard);
    attempt.after_touched |= differs(before, after, span.offset + span.bytes, CallMemory::kGuard);
  };
  for (const CallMemory::Span& span : memory.inputs(0)) {
    attempt.inputs_changed |= differs(before, after, span.offset, span.bytes);
    bands(span);
  }
  for (const CallMemory::Span& span : memory.outputs(0)) {
    bands(span);
    attempt.outputs.emplace_back(after.begin() + span.offset, after.begin() + span.offset + span.bytes);
  }
}

Attempt attempt_once(const Job& job, CallMemory& memory, const Stream& stream, const std::vector<Bytes>& inputs,
                     const Pattern& pattern) {
  const Bytes before = lay_out(memory, inputs, pattern);
  memory.upload(before);
  job.contender.run(job.problem, memory, 0, stream.get());
  stream.wait("running the kernel");
  must(cudaDeviceSynchronize(), "waiting for the device");
  Attempt attempt;
  inspect(memory, before, memory.download(), attempt);
  return attempt;
}

bool all_bytes(const unsigned char* at, size_t count, unsigned char value) {
  for (size_t i = 0; i < count; ++i)
    if (at[i] != value) return false;
  return true;
}

// An element is unwritten when it holds the poison of its run both times. Such
// elements differ between the runs, and count for that alone.
void compare_runs(const Bytes& first, const Bytes& second, size_t width, Verdict& verdict) {
  for (size_t at = 0; at < first.size(); at += width) {
    if (all_bytes(&first[at], width, kPatterns[0].poison) && all_bytes(&second[at], width, kPatterns[1].poison))
      ++verdict.unwritten;
    else if (std::memcmp(&first[at], &second[at], width) != 0)
      verdict.repeatable = false;
  }
}

// An Error sums up the distance from the reference over every output.
struct Error {
  double difference = 0, reference = 0;  // sums of squares
  double worst = -1;

  void add(double value, double exact, uint64_t index, Verdict& verdict) {
    if (std::isfinite(value) != std::isfinite(exact)) {
      if (verdict.nonfinite++ == 0) verdict.max_abs_index = index;
      return;
    }
    if (!std::isfinite(exact)) return;
    const double error = std::fabs(value - exact);
    difference += error * error;
    reference += exact * exact;
    if (!(error <= worst)) {
      worst = error;
      if (verdict.nonfinite == 0) verdict.max_abs_index = index;
    }
  }

  void finish(Verdict& verdict) const {
    verdict.relative_error = difference == 0 ? 0 : std::sqrt(difference / reference);
    verdict.max_abs_error = worst < 0 ? 0 : worst;
    if (verdict.nonfinite > 0) verdict.relative_error = verdict.max_abs_error = NAN;
  }
};

Verdict judge(const Job& job, const Golden& golden, const Attempt& first, const Attempt& second) {
  Verdict verdict;
  Error error;
  for (size_t i = 0; i < first.outputs.size(); ++i) {
    const int output = static_cast<int>(i);
    const std::vector<double> values = job.op.to_double(output, first.outputs[i]);
    for (size_t j = 0; j < values.size(); ++j)
      error.add(values[j], golden.outputs[i][j], verdict.elements + j, verdict);
    verdict.elements += values.size();
    compare_runs(first.outputs[i], second.outputs[i], job.op.element_bytes(output), verdict);
  }
  error.finish(verdict);
  verdict.inputs_changed = first.inputs_changed || second.inputs_changed;
  if (first.after_touched || second.after_touched) verdict.guard = "after";
  if (first.before_touched || second.before_touched) verdict.guard = "before";
  return verdict;
}

std::string format(const char* text, double a, double b) {
  char line[128];
  std::snprintf(line, sizeof line, text, a, b);
  return line;
}

std::vector<std::string> reasons(const Verdict& v, double tolerance) {
  std::vector<std::string> why;
  const std::string of_elements = " of " + std::to_string(v.elements) + " elements ";
  if (v.unwritten > 0) why.push_back(std::to_string(v.unwritten) + of_elements + "were not written");
  if (v.nonfinite > 0) why.push_back(std::to_string(v.nonfinite) + of_elements + "are not finite where the reference is, or finite where it is not");
  else if (!(v.relative_error <= tolerance)) why.push_back(format("relative error %.3g is above %.3g", v.relative_error, tolerance));
  if (std::strcmp(v.guard, "ok") != 0) why.push_back(std::string("memory ") + v.guard + " a tensor was written");
  if (v.inputs_changed) why.push_back("an input was written");
  if (!v.repeatable) why.push_back("two runs on the same inputs differ");
  return why;
}

Json to_json(const Job& job, int input_class, const Verdict& v) {
  const std::vector<std::string> why = reasons(v, job.options.tolerance);
  Json record = job.record();
  record.field("class", job.op.class_name(input_class)).field("elements", v.elements);
  record.field("relative_error", v.relative_error).field("max_abs_error", v.max_abs_error);
  record.field("max_abs_index", v.max_abs_index).field("nonfinite", v.nonfinite).field("unwritten", v.unwritten);
  record.field("guard", v.guard).field("inputs_changed", v.inputs_changed).field("repeatable", v.repeatable);
  return record.field("status", why.empty() ? "pass" : "fail").field("reasons", why);
}

}  // namespace

void check(const Job& job) {
  const Stream stream;
  CallMemory memory(job.problem, 1, std::nullopt, stream);
  for (int input_class = 0; input_class < job.op.classes(); ++input_class) {
    job.records.begin(job.record().field("class", job.op.class_name(input_class)));
    const Golden& golden = job.op.golden(job.problem, input_class, job.options.seed);
    if (input_class == 0) job.contender.prepare(job.problem, memory);
    const Attempt first = attempt_once(job, memory, stream, golden.inputs, kPatterns[0]);
    const Attempt second = attempt_once(job, memory, stream, golden.inputs, kPatterns[1]);
    job.records.check(to_json(job, input_class, judge(job, golden, first, second)));
  }
  // A kernel that works on a stream of its own can get this far, by luck; captured
  // it shows nothing, and is refused here as it would be in every measurement.
  const CallGraph captured(job.contender, job.problem, memory, 0, 1, stream);
}
