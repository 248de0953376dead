#include "options.h"

#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <random>
#include <set>

#include "failure.h"

namespace {

[[noreturn]] void usage(const std::string& message) { throw Failure("usage", message); }

template <class T>
T number(const std::string& flag, const std::string& text, T low, T high) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= low && value <= high))
    usage(flag + ": " + text + " is not a number in range");
  return value;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (char c : text) {
    if (c == separator) parts.emplace_back();
    else parts.back().push_back(c);
  }
  return parts;
}

// Cuts text at one separator; both sides must be there.
std::pair<std::string, std::string> cut(const std::string& flag, const std::string& text, size_t at) {
  if (at == std::string::npos || at == 0 || at + 1 == text.size()) usage(flag + ": cannot read " + text);
  return {text.substr(0, at), text.substr(at + 1)};
}

CaseSpec parse_case(const std::string& text) {
  const auto [name, list] = cut("--case", text, text.find('='));
  CaseSpec spec{name, {}};
  for (const std::string& part : split(list, ',')) {
    const auto [dim, value] = cut("--case", part, part.find(':'));
    if (!spec.dims.emplace(dim, number<int64_t>("--case", value, 1, int64_t{1} << 40)).second)
      usage("--case: " + name + " gives " + dim + " twice");
  }
  return spec;
}

template <class T, class Name>
size_t find(const std::vector<T>& list, Name name, const std::string& wanted) {
  for (size_t i = 0; i < list.size(); ++i)
    if (name(list[i]) == wanted) return i;
  usage("--run: nothing is named " + wanted);
}

Run parse_run(const Options& o, const std::string& text) {
  const auto [kernel, case_name] = cut("--run", text, text.rfind('@'));
  return {find(o.kernels, [](const KernelSpec& k) { return k.id; }, kernel),
          find(o.cases, [](const CaseSpec& c) { return c.name; }, case_name)};
}

Tolerance parse_tolerance(const std::string& text) {
  Tolerance tolerance;
  for (const std::string& part : split(text, ',')) {
    const auto [metric, value] = cut("--tolerance", part, part.find('='));
    const double most = metric == "max_abs_error" ? 1e300 : 1;
    const double limit = number<double>("--tolerance", value, 0, most);
    if (limit == 0) usage("--tolerance: " + metric + " must be above 0");
    if (metric == "relative_error") tolerance.relative_error = limit;
    else if (metric == "max_abs_error") tolerance.max_abs_error = limit;
    else if (metric == "between_runs") tolerance.between_runs = limit;
    else usage("--tolerance: " + metric + " is none of relative_error, max_abs_error and between_runs");
  }
  return tolerance;
}

void parse_calls(Options& o, const std::string& text) {
  const auto [unit, value] = cut("--calls", text, text.rfind('='));
  if (!o.calls.emplace(unit, number<int>("--calls", value, 1, 4096)).second) usage("--calls: " + unit + " is given twice");
}

void parse_rows(Options& o, const std::string& text) {
  const auto [name, value] = cut("--rows", text, text.rfind('='));
  if (!o.rows.emplace(name, number<int64_t>("--rows", value, 1, int64_t{1} << 40)).second) usage("--rows: " + name + " is given twice");
}

std::vector<Regime> parse_regimes(const std::string& text) {
  std::vector<Regime> regimes;
  for (const std::string& name : split(text, ',')) {
    if (name != "warm" && name != "cold") usage("--regimes: " + name + " is neither warm nor cold");
    regimes.push_back(name == "warm" ? Regime::warm : Regime::cold);
  }
  if (regimes.size() == 2 && regimes[0] == regimes[1]) usage("--regimes: a regime is given twice");
  if (regimes.size() > 2) usage("--regimes: a regime is given twice");
  return regimes;
}

Mode parse_mode(const std::string& text) {
  for (Mode mode : {Mode::device, Mode::prepare, Mode::check, Mode::time, Mode::profile})
    if (text == mode_name(mode)) return mode;
  usage("the mode is one of device, prepare, check, time and profile, and not " + text);
}

// Launches of different cases of one kernel are told apart by their order alone, so
// each case is profiled once, and no other kernel's launches come between them.
void one_kernel(const Options& o) {
  std::set<size_t> cases;
  for (const Run& run : o.runs) {
    if (run.kernel != o.runs[0].kernel) usage("profile: every --run has to name one and the same kernel");
    if (!cases.insert(run.case_index).second) usage("profile: a case may be given once");
  }
}

// What a mode needs to have been given.
void validate(const Options& o) {
  std::set<std::string> names;
  for (const CaseSpec& c : o.cases)
    if (!names.insert(c.name).second) usage("--case: two are named " + c.name);
  for (const auto& [name, rows] : o.rows)
    if (names.count(name) == 0) usage("--rows: no case is named " + name);
  names.clear();
  for (const KernelSpec& k : o.kernels)
    if (!names.insert(k.id).second) usage("--kernel: two are named " + k.id);
  if (o.mode == Mode::device) return;
  if (o.op_path.empty()) usage(std::string(mode_name(o.mode)) + " needs --op");
  if (o.mode == Mode::prepare) {
    if (o.data.empty() || o.cases.empty()) usage("prepare needs --data and at least one --case");
    return;
  }
  if (o.runs.empty()) usage(std::string(mode_name(o.mode)) + " needs at least one --run");
  if (o.mode == Mode::profile) return one_kernel(o);
  if (o.tolerance.relative_error == 0 && o.tolerance.max_abs_error == 0 && o.exact.empty())
    usage(std::string(mode_name(o.mode)) + " needs --tolerance relative_error=X");
}

constexpr double kMaxMicroseconds = 1e7, kMaxMilliseconds = 1e5;

KernelSpec parse_kernel(const std::string& text) {
  const auto [id, path] = cut("--kernel", text, text.find('='));
  return {id, path};
}

// Takes one flag that has a value; false when the name is unknown.
bool take(Options& o, std::vector<std::string>& runs, const std::string& flag, const std::string& value) {
  if (flag == "--op") return o.op_path = value, true;
  if (flag == "--case") return o.cases.push_back(parse_case(value)), true;
  if (flag == "--kernel") return o.kernels.push_back(parse_kernel(value)), true;
  if (flag == "--run") return runs.push_back(value), true;
  if (flag == "--seed") return o.seed = number<uint64_t>(flag, value, 0, UINT64_MAX), true;
  if (flag == "--tolerance") return o.tolerance = parse_tolerance(value), true;
  if (flag == "--batches") return o.batches = number<int>(flag, value, 1, 10000), true;
  if (flag == "--batch-us") return o.batch_us = number<double>(flag, value, 1, kMaxMicroseconds), true;
  if (flag == "--warmup-ms") return o.warmup_ms = number<double>(flag, value, 0, kMaxMilliseconds), true;
  if (flag == "--warmup-batches") return o.warmup_batches = number<int>(flag, value, 1, 10000), true;
  if (flag == "--exact") return o.exact.push_back(value), true;
  if (flag == "--inout") return o.inout.push_back(value), true;
  if (flag == "--pdl") return o.pdl.push_back(value), true;
  if (flag == "--reference") return o.references.push_back(value), true;
  if (flag == "--calls") return parse_calls(o, value), true;
  if (flag == "--rows") return parse_rows(o, value), true;
  if (flag == "--alignment") return o.alignment = number<size_t>(flag, value, 1, 256), true;
  if (flag == "--workspace") return o.workspace_bytes = number<size_t>(flag, value, 0, size_t{1} << 36), true;
  if (flag == "--data") return o.data = value, true;
  if (flag == "--work-unit") return o.work_unit = value, true;
  if (flag == "--settle-ms") return o.settle_ms = number<double>(flag, value, 0, kMaxMilliseconds), true;
  if (flag == "--regimes") return o.regimes = parse_regimes(value), true;
  return false;
}

}  // namespace

std::vector<std::string> arguments(int fd) {
  std::string text;
  char piece[65536];
  for (;;) {
    const ssize_t n = read(fd, piece, sizeof piece);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) usage("standard input, which holds the arguments, cannot be read");
    if (n == 0) break;
    text.append(piece, static_cast<size_t>(n));
  }
  std::vector<std::string> list = split(text, '\0');
  if (!list.back().empty()) usage("standard input ends within an argument");
  list.pop_back();
  return list;
}

const char* mode_name(Mode mode) {
  switch (mode) {
    case Mode::device: return "device";
    case Mode::prepare: return "prepare";
    case Mode::check: return "check";
    case Mode::time: return "time";
    case Mode::profile: return "profile";
  }
  return "";
}

const char* regime_name(Regime regime) { return regime == Regime::warm ? "warm" : "cold"; }

Options parse(const std::vector<std::string>& args) {
  if (args.empty()) usage("no mode is given: device, prepare, check, time or profile");
  Options o;
  o.mode = parse_mode(args[0]);
  const std::set<std::string> repeatable = {"--case", "--kernel", "--run", "--exact", "--inout", "--pdl", "--reference", "--calls", "--rows"};
  std::set<std::string> seen;
  std::vector<std::string> runs;  // resolved last, so that flags may come in any order
  for (size_t i = 1; i < args.size(); ++i) {
    const std::string& flag = args[i];
    if (!seen.insert(flag).second && repeatable.count(flag) == 0) usage(flag + " is given twice");
    if (flag == "--varies") {
      o.varies = true;
      continue;
    }
    if (i + 1 == args.size()) usage("unknown flag or missing value: " + flag);
    if (!take(o, runs, flag, args[++i])) usage("unknown flag: " + flag);
  }
  if (seen.count("--seed") == 0) {
    std::random_device device;
    o.seed = (uint64_t{device()} << 32) | device();
  }
  for (const std::string& run : runs) o.runs.push_back(parse_run(o, run));
  validate(o);
  return o;
}
