// gate-harness: loads an op and its contenders, runs what the command line asks
// for, and reports it as JSON lines. README.md documents command line, records
// and exit codes.

#include <cstdlib>
#include <exception>

#include "units.h"

namespace {

constexpr char kProtocol[] = "gate-harness/1";
enum Exit { kAllRan = 0, kErrors = 1, kUsage = 2 };

// A Session holds what was loaded, since every run may use it again.
class Session {
 public:
  Session(const Options& options, const Device& device, RecordStream& records)
      : options_(options), device_(device), records_(records), op_(options.op_path) {
    for (const CaseSpec& spec : options.cases) problems_.push_back(op_.problem(spec));
    for (const KernelSpec& kernel : options.kernels) contenders_.emplace_back(kernel.id, kernel.path);
  }

  // run_all does every run in the order given. It stops at the first error that
  // the context cannot recover from: nothing after it would mean anything.
  void run_all() {
    for (const Run& run : options_.runs)
      if (!run_one(run) && context_lost()) return;
  }

 private:
  bool run_one(const Run& run) {
    const KernelSpec& kernel = options_.kernels[run.kernel];
    const Problem& problem = problems_[run.case_index];
    try {
      const Job job{options_, device_, op_, contenders_[run.kernel], kernel.id, problem, records_};
      switch (options_.mode) {
        case Mode::check: check(job); break;
        case Mode::time: measure(job); break;
        case Mode::profile: profile(job); break;
        case Mode::device: break;
      }
      return true;
    } catch (const Failure& failure) {
      records_.error(kernel.id, problem.name, failure);
    } catch (const std::exception& e) {
      records_.error(kernel.id, problem.name, Failure("op", e.what()));
    }
    return false;
  }

  const Options& options_;
  const Device& device_;
  RecordStream& records_;
  Op op_;
  std::vector<Problem> problems_;
  std::vector<Contender> contenders_;
};

// run does what was asked for; the first record is sent as soon as the device is
// known, or known to be unusable.
int run(const std::vector<std::string>& args, RecordStream& records) {
  Json config = Json().field("protocol", kProtocol);
  bool announced = false;
  try {
    const Options options = parse(args);
    config.field("mode", mode_name(options.mode)).field("seed", options.seed);
    Device device;
    device.open();
    records.config(config.field("device", device.describe()));
    announced = true;
    if (options.mode != Mode::device) Session(options, device, records).run_all();
  } catch (const Failure& failure) {
    if (!announced) records.config(config.null("device"));
    std::fprintf(stderr, "gate-harness: %s\n", failure.message.c_str());
    records.error("", "", failure);
    if (failure.kind == "usage") return kUsage;
  }
  return records.errors() == 0 ? kAllRan : kErrors;
}

}  // namespace

int main(int argc, char** argv) {
  RecordStream records;
  if (!records.take_stdout()) return kErrors;
  const int code = run({argv + 1, argv + argc}, records);
  records.end();
  // Exit handlers and destructors of the contenders are not ours to run: one that
  // crashes would turn a finished stream into a failure.
  std::_Exit(code);
}
