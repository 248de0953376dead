#include "units.h"

// Exported by the runtime; the header that declares them is not part of every
// compiler package.
extern "C" cudaError_t cudaProfilerStart(void);
extern "C" cudaError_t cudaProfilerStop(void);

void profile(const Job& job) {
  job.records.begin(job.record());
  const Stream stream;
  CallMemory memory(job.problem, 1, std::nullopt, stream);
  memory.upload_inputs(0, job.op.inputs(job.problem, 0, job.options.seed));
  memory.poison_outputs(0xFF);
  job.contender.prepare(job.problem, memory);
  job.contender.run(job.problem, memory, 0, stream.get());
  stream.wait("warming up");
  must(cudaProfilerStart(), "starting the profiler");
  job.contender.run(job.problem, memory, 0, stream.get());
  stream.wait("running one call");
  must(cudaProfilerStop(), "stopping the profiler");
  job.records.profile(job.record().field("calls", 1));
}
