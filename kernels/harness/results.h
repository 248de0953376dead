// results.h: where the calls of a reference leave their results.
#pragma once

#include <functional>
#include <vector>

#include "contender.h"
#include "device_code.h"
#include "memory.h"
#include "problem.h"

// Results of the calls of one graph that lie outside of the calls' outputs, as
// gate_result says. They are poisoned as outputs are, and copied into the outputs
// after a replay, so that everything which judges outputs judges them.
class Results {
 public:
  explicit Results(const Problem& problem) : problem_(problem) {}

  // add asks where the call that was enqueued last leaves its results. Call i is
  // the i-th that is added.
  void add(const Contender& contender, const CallMemory& memory, int set);
  // All calls were added; a Failure where a result lies in no memory of the device,
  // in memory of the harness, or where the result of another set lies.
  void finish(const Contender& contender, const CallMemory& memory, int sets) const;

  // Both enqueue work, where there are such results, and do not wait. collect takes
  // what the last call on each set left for which on(call) holds.
  void poison(Pattern pattern, cudaStream_t stream) const;
  void collect(const CallMemory& memory, const std::function<bool(int)>& on, cudaStream_t stream) const;

 private:
  // Where one call leaves its outputs; null where it writes into its own.
  struct Call {
    int set;
    std::vector<unsigned char*> outputs;
  };

  const Problem& problem_;
  std::vector<Call> calls_;
};
