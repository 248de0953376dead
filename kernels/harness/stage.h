// stage.h: one kernel on one case, set up on the device. Memory, graphs and the
// order of everything that the kernel's host code can see are the same whether it
// will be checked or timed, and no data is there yet while that code runs.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "contender.h"
#include "device.h"
#include "graph.h"
#include "memory.h"
#include "options.h"
#include "problem.h"

// What the runner asks for when a stage is set up.
struct StageOrder {
  Problem problem;
  uint64_t padding_seed;
  double batch_us;
  int calls[2];       // of a batch, by regime; 0 for as many as it takes
  bool programmatic;  // the kernel may launch programmatically

  void put(Message& message) const;
  static StageOrder get(Message& message);
};

// How one regime is measured; calls is 0 where it cannot be, with the reason.
struct Plan {
  int calls = 0, sets = 0;
  std::string absent;
};

// What surrounds an attempt.
enum class Setting : uint8_t { plain, after_producer, beside_stream };

struct Attempt {
  Setting setting;
  Pattern bands, poison;
};

// Findings count bytes or words that do not hold what they must hold.
struct Findings {
  uint64_t inputs = 0, before = 0, after = 0, others = 0;
  int other_set = -1;  // the first set with other results, where somebody asked which
};

struct Times {
  std::vector<double> batches_ns, host_ns;  // per call and per batch
  std::vector<double> sm_mhz;               // per batch; 0 where it could not be told
  std::string before, after;                // states of the device, JSON
  double sampling_ms = 0;                   // of both states
  Findings found;
};

class Stage {
 public:
  // alive is called at least every second while something is under way.
  Stage(Device& device, Contender& contender, StageOrder order, std::function<void()> alive);

  const Plan& plan(Regime regime) const { return plans_[index(regime)]; }
  int kernel_nodes(Regime regime) const { return graphs_[index(regime)]->kernel_nodes(); }
  const std::vector<uint32_t>& launches(Regime regime) const { return graphs_[index(regime)]->launches(); }

  // load takes images of inputs. Whatever is done next works on image i mod images in
  // set i.
  void load(const unsigned char* images, int count);
  // attempt lays fresh bands and fresh poison, and replays a graph. The outputs for each
  // image go to `outputs`, one image after the other. After a producer there is only one
  // image.
  Findings attempt(const Attempt& attempt, unsigned char* outputs);
  Times time(Regime regime, double warmup_ms, int warmup_batches, int batches, unsigned char* outputs);
  // fresh replays only the first call on each set and returns what one more such
  // call takes, in ns.
  double fresh(Regime regime, unsigned char* outputs);
  // single returns what one call takes by itself, in ns: the median of several calls,
  // less what a replay without a call takes.
  double single(Regime regime);
  // skip switches off all calls on one set. It finds what was written to the set all the
  // same, and what the other calls got wrong. The others run in one replay, or with
  // apart in one replay for each row of calls between two that are switched off.
  Findings skip(Regime regime, int set, bool apart);
  // call makes one call by itself, eagerly, on the inputs that ready_call put in place.
  void ready_call();
  void call();

 private:
  static size_t index(Regime regime) { return regime == Regime::warm ? 0 : 1; }

  void make_plans();
  void estimate();
  double replay_ns(CallMemory& memory, int calls);
  void capture();
  Regime checked() const { return plans_[0].calls > 0 ? Regime::warm : Regime::cold; }
  Pattern fresh_poison();
  void lay_out(const Pattern& bands, int sets);
  void poison(const Pattern& pattern, const CallGraph& graph);
  void expect(int sets);
  void clear_counters();
  void compare(int sets, int left_out = -1);
  void compare_one(int set);
  int first_other(int sets, int left_out);
  void inspect(int sets, Findings& found);
  uint64_t counted(int counter);
  void download(unsigned char* outputs, int images);
  void flush(Regime regime);
  double replay_some(Regime regime, const std::function<bool(int)>& on);
  void replay_at_once(CallGraph& graph, const std::function<bool(int)>& on);
  void replay_apart(CallGraph& graph, int set);
  double clock_mhz();
  void beat();

  Device& device_;
  Contender& contender_;
  const StageOrder order_;
  const Problem& problem_;
  const std::function<void()> alive_;
  std::chrono::steady_clock::time_point last_beat_;
  const Stream stream_, other_stream_;
  Stopwatch watch_;
  Plan plans_[2];
  double call_ns_ = 0;
  std::unique_ptr<CallMemory> memory_;
  std::unique_ptr<CallGraph> graphs_[2], after_producer_;
  DeviceMemory images_, expected_, counters_, stamps_;
  const DeviceMemory& scratch_;
  const size_t scratch_bytes_;
  int image_count_ = 0, most_images_ = 1;
  Pattern bands_{0, 0xFF};
  uint64_t random_;
};
