// results.h: where the calls of a reference leave their results.
#pragma once

#include <functional>
#include <vector>

#include "contender.h"
#include "device_code.h"
#include "memory.h"
#include "problem.h"

// Results are the results of the calls of one graph, where a library allocates them
// itself. gate_result says where each lies. Before a replay they are filled with poison,
// as outputs are. After it they are copied into the outputs of their calls. All that
// judges a kernel reads the outputs, so it judges these results too.
class Results {
 public:
  explicit Results(const Problem& problem) : problem_(problem) {}

  // add is for the call that was enqueued last: it asks where that call leaves its
  // results. Calls are numbered from 0 in the order in which they are added.
  void add(const Contender& contender, const CallMemory& memory, int set);
  // finish is called when all calls were added. It throws a Failure if a result does not
  // lie in memory of the device, if it lies in memory of the harness, or if the result
  // of another set lies in the same place.
  void finish(const Contender& contender, const CallMemory& memory, int sets) const;

  // poison enqueues what fills the results with poison. Like collect, it does not wait.
  void poison(Pattern pattern, cudaStream_t stream) const;
  // collect enqueues the copies into the outputs. Several calls can work on one set. Of
  // those for which on(call) is true, the last one wrote what the set holds now, so its
  // result is copied.
  void collect(const CallMemory& memory, const std::function<bool(int)>& on, cudaStream_t stream) const;

 private:
  // A Call is where one call leaves its outputs. An entry is null if the call wrote into
  // the output that it was given.
  struct Call {
    int set;
    std::vector<unsigned char*> outputs;
  };

  const Problem& problem_;
  std::vector<Call> calls_;
};
