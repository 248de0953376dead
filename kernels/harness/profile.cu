#include "units.h"

void profile(const Job& job) {
  job.records.begin(job.record());
  (void)set_up(job);
  load(job, {&job.data.golden(job.problem, 0, 0)});
  (void)job.worker.ask(Request::profile);
  job.records.profile(job.record().field("calls", 1));
}
