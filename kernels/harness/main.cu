// gate-harness: runs contenders of an op as the command line asks, and reports as
// JSON lines. The program that is started is the runner: it knows the op, the
// references and what is asked for. It starts itself again as the worker, which
// loads the contenders and knows none of that. README.md documents command line,
// records and exit codes.

#include <malloc.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>

#include "beating.h"
#include "peaks.h"
#include "serve.h"
#include "units.h"

namespace {

constexpr char kProtocol[] = "gate-harness/3";
enum Exit { kAllRan = 0, kErrors = 1, kUsage = 2 };

// A Session is the runner's side of all runs.
class Session {
 public:
  Session(const Options& options, const Op& op, Worker& worker, RecordStream& records)
      : options_(options), op_(op), worker_(worker), records_(records), data_(op_, options) {
    for (const CaseSpec& spec : options.cases) problems_.push_back(op_.problem(spec, options));
  }

  // get_ready chooses and reads the inputs of all runs.
  void get_ready() {
    if (options_.mode == Mode::profile) return;
    for (const Run& run : options_.runs) preload(job(run));
  }

  // run_all does every run in the order given. It stops at the first error that
  // the context cannot recover from: nothing after it would mean anything. The
  // peaks come first: no code of a kernel is loaded yet. A check measures them as
  // well, so that the age of the process does not tell a kernel that it is timed.
  void run_all() {
    if (options_.settle_ms > 0) (void)worker_.ask(Request::settle, Message().put(options_.settle_ms));
    if (options_.mode != Mode::profile) measure_card();
    for (const Run& run : options_.runs)
      if (!run_one(run) && worker_.lost()) return;
  }

 private:
  Job job(const Run& run) {
    return {options_, op_, data_, worker_, options_.kernels[run.kernel], problems_[run.case_index], records_};
  }

  void measure_card() {
    Message answer = worker_.ask(Request::peaks, Message().put(unit_index(options_.work_unit)));
    const Peaks peaks = Peaks::get(answer);
    if (options_.mode == Mode::time) records_.peaks(peaks.record(options_.work_unit));
  }

  bool run_one(const Run& run) {
    const Job one = job(run);
    try {
      switch (options_.mode) {
        case Mode::check: check(one); break;
        case Mode::time: measure(one); break;
        case Mode::profile: profile(one); break;
        case Mode::device:
        case Mode::prepare: break;
      }
      return true;
    } catch (const Failure& failure) {
      records_.error(one.kernel.id, one.problem.name, failure);
    } catch (const std::exception& e) {
      records_.error(one.kernel.id, one.problem.name, Failure("op", e.what()));
    }
    return false;
  }

  const Options& options_;
  const Op& op_;
  Worker& worker_;
  RecordStream& records_;
  Data data_;
  std::vector<Problem> problems_;
};

// What a session needs, made while the device starts.
struct Setup {
  Op op;
  Session session;

  Setup(const Options& options, Worker& worker, RecordStream& records) : op(options.op_path), session(options, op, worker, records) {
    const auto begin = std::chrono::steady_clock::now();
    session.get_ready();
    records.spend("data", std::chrono::steady_clock::now() - begin);
  }
};

void prepare(const Options& options, RecordStream& records) {
  const Op op(options.op_path);
  Data data(op, options);
  const Beating beating(records);
  for (const CaseSpec& spec : options.cases) data.prepare(op.problem(spec, options));
}

// run does what was asked for; the first record is sent as soon as the device is
// known, or known to be unusable. The inputs are read while the device starts.
int run(std::vector<std::string> args, RecordStream& records) {
  Json config = Json().field("protocol", kProtocol);
  bool announced = false;
  try {
    if (args == std::vector<std::string>{"-"}) args = arguments(STDIN_FILENO);
    const Options options = parse(args);
    config.field("mode", mode_name(options.mode)).field("seed", options.seed);
    if (options.mode == Mode::prepare) {
      records.config(config.null("device"));
      announced = true;
      prepare(options, records);
      return kAllRan;
    }
    Worker worker(records);
    worker.begin(Request::open);
    std::optional<Failure> unready;
    std::unique_ptr<Setup> setup;
    try {
      if (options.mode != Mode::device) setup = std::make_unique<Setup>(options, worker, records);
    } catch (const Failure& failure) {
      unready = failure;  // told after the device's answer, which comes first
    }
    records.config(config.verbatim("device", worker.finish().text()));
    announced = true;
    if (unready) throw *unready;
    if (setup != nullptr) setup->session.run_all();
  } catch (const Failure& failure) {
    if (!announced) records.config(config.null("device"));
    std::fprintf(stderr, "gate-harness: %s\n", failure.message.c_str());
    records.error("", "", failure);
    if (failure.kind == "usage") return kUsage;
  }
  return records.errors() == 0 ? kAllRan : kErrors;
}

// Only the runner may know what was asked for. A kernel could look it up in /proc, so
// the arguments are erased, and the memory of the runner cannot be read by processes of
// this user. A process that another one overlaps is asked by standard input: arguments
// can be read by every process from its start until they are erased.
void hide(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) std::memset(argv[i], 0, std::strlen(argv[i]));
  (void)prctl(PR_SET_DUMPABLE, 0);
}

// Results of megabytes come and go: memory that was released is kept for the next
// ones, since the system clears every page that it hands out.
void keep_memory() {
  (void)mallopt(M_MMAP_THRESHOLD, 32 << 20);
  (void)mallopt(M_TRIM_THRESHOLD, 1 << 30);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4 && std::string(argv[1]) == "worker") {
    // Exit handlers and destructors of the contenders are not ours to run: one that
    // crashes would turn a finished unit into a failure.
    std::_Exit(serve(std::atoi(argv[2]), std::atoi(argv[3])));
  }
  const auto begin = std::chrono::steady_clock::now();
  RecordStream records;
  if (!records.take_stdout()) return kErrors;
  const std::vector<std::string> args(argv + 1, argv + argc);
  hide(argc, argv);
  keep_memory();
  const int code = run(args, records);
  records.spend("all", std::chrono::steady_clock::now() - begin);
  records.end();
  std::_Exit(code);
}
