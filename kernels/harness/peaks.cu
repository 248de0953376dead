#include "peaks.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "device_code.h"
#include "graph.h"
#include "peak_code.h"

namespace {

// A rate is measured until it was not higher by this share once more, so that a clock
// which still rises is waited for. Every process measures anew and the highest of all
// counts, so that one process spends little on it.
constexpr double kHigher = 0.005;
constexpr int kQuiet = 1, kMostRepetitions = 20;
// Before the first, the device is busy for a while: it was idle, at whatever clock.
constexpr double kSettleMs = 1;
// A launch is long enough that its start takes little of it.
constexpr double kLongNs = 100000;
constexpr unsigned kFirstRounds = 256, kMostRounds = 1u << 20;
// Memory is of so many times the L2, so that next to nothing is found in the L2; what
// is to be found there takes a quarter of it.
constexpr size_t kColdCaches = 4, kWarmPart = 4;
constexpr int kWarmPasses = 32;

constexpr Traffic kTraffic[] = {Traffic::read, Traffic::write, Traffic::copy};
constexpr const char* kTrafficNames[] = {"read", "write", "copy"};

// The shortest time of a launch, with what is told of it.
struct Best {
  double ns = std::numeric_limits<double>::infinity(), sm_mhz = 0;
};

class Measurement {
 public:
  explicit Measurement(const Device& device) : device_(device) {
    const size_t wanted = kColdCaches * device.l2_bytes();
    bytes_ = std::min(wanted, device.free_bytes() / 2) / 256 * 256;
    if (bytes_ < 256) throw Failure("memory", "the device has no memory to measure its peaks");
    memory_.allocate(bytes_);
    notes_.allocate(sizeof(Notes));
  }

  Peaks all(int unit) {
    device_.settle(kSettleMs);
    Peaks peaks;
    const size_t warm = std::max<size_t>(256, device_.l2_bytes() / kWarmPart / 256 * 256);
    for (Traffic traffic : kTraffic) peaks.cold.push_back(rate(traffic, bytes_, 1));
    for (Traffic traffic : kTraffic) peaks.warm.push_back(rate(traffic, std::min(warm, bytes_), kWarmPasses));
    peaks.flops.resize(units().size());
    peaks.sm_mhz.resize(units().size());
    if (unit < 0) return peaks;
    const auto at = static_cast<size_t>(unit);
    for (Way way : units().at(at).ways) take_better(way, peaks.flops[at], peaks.sm_mhz[at]);
    return peaks;
  }

 private:
  // What kernels write for the host, and what none writes but by chance.
  struct Notes {
    Stamp stamps[2];
    unsigned long long operations;
    uint32_t sink;
  };

  Notes* notes() const { return static_cast<Notes*>(notes_.get()); }

  Notes read() {
    Notes read{};
    must(cudaMemcpyAsync(&read, notes_.get(), sizeof read, cudaMemcpyDeviceToHost, stream_.get()), "reading what was measured");
    stream_.wait("reading what was measured");
    return read;
  }

  // The driver loads a kernel when it is launched for the first time, and may wait for
  // the device then: not while a stopwatch holds the stream.
  void load(const std::function<cudaError_t()>& launch) {
    must(launch(), "launching what measures the peaks");
    stream_.wait("launching what measures the peaks");
  }

  double rate(Traffic traffic, size_t bytes, int passes) {
    const auto launch = [&] {
      return enqueue_traffic(traffic, static_cast<unsigned char*>(memory_.get()), bytes, passes, device_.multiprocessors(), &notes()->sink, stream_.get());
    };
    load(launch);
    return static_cast<double>(bytes) * passes / shortest(launch).ns;
  }

  void take_better(Way way, double& flops, double& sm_mhz) {
    unsigned rounds = kFirstRounds;
    const auto launch = [&] {
      return enqueue_work(way, rounds, device_.multiprocessors(), &notes()->operations, &notes()->sink, stream_.get());
    };
    load(launch);
    if (read().operations == 0) return;
    while (watch_.time(launch, stream_).device_ns < kLongNs && rounds < kMostRounds) rounds *= 2;
    const double operations = static_cast<double>(read().operations);
    const Best best = shortest(launch);
    if (!(operations / best.ns > flops)) return;
    flops = operations / best.ns;
    sm_mhz = best.sm_mhz;
  }

  Best shortest(const std::function<cudaError_t()>& launch) {
    Best best;
    for (int quiet = 0, done = 0; quiet < kQuiet && done < kMostRepetitions; ++done) {
      must(enqueue_stamp(&notes()->stamps[0], stream_.get()), "reading the clock");
      const double ns = watch_.time(launch, stream_).device_ns;
      must(enqueue_stamp(&notes()->stamps[1], stream_.get()), "reading the clock");
      const Notes told = read();
      quiet = ns < best.ns * (1 - kHigher) ? 0 : quiet + 1;
      if (ns < best.ns) best = {ns, std::round(clock_between(told.stamps[0], told.stamps[1]) * 10) / 10};
    }
    if (!(best.ns > 0)) throw Failure("clocks", "the device's events say that measuring its peaks took no time");
    return best;
  }

  const Device& device_;
  const Stream stream_;
  Stopwatch watch_;
  DeviceMemory memory_, notes_;
  size_t bytes_ = 0;
};

Json by_traffic(const std::vector<double>& rates) {
  Json json;
  for (size_t i = 0; i < std::size(kTrafficNames); ++i) json.field(kTrafficNames[i], std::round(rates.at(i) * 10) / 10);
  return json;
}

}  // namespace

Peaks Peaks::get(Message& message) {
  Peaks peaks;
  for (std::vector<double>* rates : {&peaks.cold, &peaks.warm, &peaks.flops, &peaks.sm_mhz}) *rates = message.list<double>();
  if (peaks.cold.size() != std::size(kTraffic) || peaks.warm.size() != std::size(kTraffic) || peaks.flops.size() != units().size() ||
      peaks.sm_mhz.size() != units().size())
    throw Failure("forged", "the worker gave other peaks than it was asked for");
  return peaks;
}

int unit_index(const std::string& name) {
  for (size_t i = 0; i < units().size(); ++i)
    if (units()[i].name == name) return static_cast<int>(i);
  if (!name.empty()) throw Failure("usage", "--work-unit: there is no unit " + name);
  return -1;
}

Json Peaks::record(const std::string& stated) const {
  Json known, absent, clocks;
  for (size_t i = 0; i < units().size(); ++i) {
    const std::string unit = units()[i].name;
    if (flops[i] > 0) known.field(unit, std::round(flops[i] * 10) / 10);
    else if (unit != stated) absent.field(unit, "the op states no work of " + unit);
    else absent.field(unit, "no instruction that the harness has for this card is known to reach the peak of " + unit);
    if (sm_mhz[i] > 0) clocks.field(unit, sm_mhz[i]);
  }
  Json record = Json().field("cold_bytes_per_ns", by_traffic(cold)).field("warm_bytes_per_ns", by_traffic(warm));
  return record.field("flops_per_ns", known).field("absent", absent).field("sm_mhz", clocks);
}

Peaks measure_peaks(const Device& device, int unit) { return Measurement(device).all(unit); }
