#include "units.h"

void profile(const Job& job) {
  job.records.begin(job.record());
  const Stages stages = set_up(job);
  const Staged& staged = stages[stages.checked()];
  load(job, {&job.data.golden(job.problem, 0, 0)});
  (void)job.worker.ask(Request::profile);
  job.records.profile(job.record().field("calls", 1).field("kernel_nodes", staged.kernel_nodes / staged.plan.calls));
}
