#include "failure.h"
#include "units.h"

namespace {

// The launches of one call, as a list of JSON; null for one that the runtime does not
// know.
std::string listed(const std::vector<uint32_t>& launches) {
  const auto three = [&](size_t at) {
    return "[" + std::to_string(launches[at]) + "," + std::to_string(launches[at + 1]) + "," + std::to_string(launches[at + 2]) + "]";
  };
  std::string list;
  for (size_t i = 0; i < launches.size(); i += 6) {
    if (i > 0) list += ',';
    list += launches[i] == 0 ? "null" : Json().verbatim("grid", three(i)).verbatim("block", three(i + 3)).text();
  }
  return "[" + list + "]";
}

}  // namespace

void profile(const Job& job) {
  job.records.begin(job.record());
  const Stages stages = set_up(job);
  const Staged& staged = stages[stages.checked()];
  const int nodes = staged.kernel_nodes / staged.plan.calls;
  if (staged.launches.size() != 6 * static_cast<size_t>(nodes)) throw Failure("forged", "the worker tells of other launches than it counts");
  load(job, {&job.data.golden(job.problem, 0, 0)});
  (void)job.worker.ask(Request::profile);
  job.records.profile(job.record().field("calls", 1).field("kernel_nodes", nodes).verbatim("launches", listed(staged.launches)));
}
