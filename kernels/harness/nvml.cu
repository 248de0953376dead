#include "nvml.h"

#include <dlfcn.h>

#include <utility>
#include <vector>

// The library is opened at run time so that the program starts on a machine
// without a driver. These declarations follow NVML's documented C interface:
// every function returns 0 for success, and a device is an opaque pointer.
namespace {

using Init = int (*)();
using HandleByUuid = int (*)(const char*, void**);
using SystemString = int (*)(char*, unsigned);
using Reading = int (*)(void*, unsigned*);
using ReadingOf = int (*)(void*, int, unsigned*);
using Bits = int (*)(void*, unsigned long long*);
using MigMode = int (*)(void*, unsigned*, unsigned*);

constexpr int kSmClock = 1, kMemoryClock = 2;  // nvmlClockType_t
constexpr int kGpuTemperature = 0;             // nvmlTemperatureSensors_t
constexpr int kNotSupported = 3;               // NVML_ERROR_NOT_SUPPORTED

// nvmlClocksEventReasons, lowest bit first.
const char* const kReasons[] = {"gpu_idle",   "app_clocks", "sw_power_cap",   "hw_slowdown",  "sync_boost",
                                "sw_thermal", "hw_thermal", "hw_power_brake", "display_clock"};

std::vector<std::string> reason_names(unsigned long long bits) {
  std::vector<std::string> names;
  for (const char* name : kReasons) {
    if (bits & 1) names.emplace_back(name);
    bits >>= 1;
  }
  if (bits != 0) names.emplace_back("unknown");
  return names;
}

std::optional<int> to_watts(std::optional<unsigned> milliwatts) {
  if (!milliwatts) return std::nullopt;
  return static_cast<int>((*milliwatts + 500) / 1000);
}

std::optional<int> to_int(std::optional<unsigned> value) {
  if (!value) return std::nullopt;
  return static_cast<int>(*value);
}

}  // namespace

std::string Nvml::open(const std::string& uuid) {
  library_ = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr) return dlerror();
  const auto init = reinterpret_cast<Init>(symbol("nvmlInit_v2"));
  const auto handle = reinterpret_cast<HandleByUuid>(symbol("nvmlDeviceGetHandleByUUID"));
  if (init == nullptr || handle == nullptr) return "libnvidia-ml.so.1 lacks nvmlInit_v2 or nvmlDeviceGetHandleByUUID";
  if (const int error = init()) return "nvmlInit_v2 returned " + std::to_string(error);
  if (const int error = handle(uuid.c_str(), &device_)) {
    device_ = nullptr;
    return "nvmlDeviceGetHandleByUUID returned " + std::to_string(error);
  }
  return "";
}

void* Nvml::symbol(const char* name) const { return library_ == nullptr ? nullptr : dlsym(library_, name); }

std::optional<unsigned> Nvml::reading(const char* name) const {
  const auto read = reinterpret_cast<Reading>(symbol(name));
  unsigned value = 0;
  if (device_ == nullptr || read == nullptr || read(device_, &value) != 0) return std::nullopt;
  return value;
}

std::optional<unsigned> Nvml::reading(const char* name, int what) const {
  const auto read = reinterpret_cast<ReadingOf>(symbol(name));
  unsigned value = 0;
  if (device_ == nullptr || read == nullptr || read(device_, what, &value) != 0) return std::nullopt;
  return value;
}

std::optional<unsigned long long> Nvml::throttle_bits() const {
  // Drivers before 535 know only the second name.
  for (const char* name : {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"}) {
    const auto read = reinterpret_cast<Bits>(symbol(name));
    unsigned long long bits = 0;
    if (device_ != nullptr && read != nullptr && read(device_, &bits) == 0) return bits;
  }
  return std::nullopt;
}

std::optional<std::string> Nvml::driver() const {
  const auto read = reinterpret_cast<SystemString>(symbol("nvmlSystemGetDriverVersion"));
  char version[96] = {};
  if (device_ == nullptr || read == nullptr || read(version, sizeof version - 1) != 0) return std::nullopt;
  return std::string(version);
}

std::optional<std::string> Nvml::mig() const {
  const auto read = reinterpret_cast<MigMode>(symbol("nvmlDeviceGetMigMode"));
  if (device_ == nullptr || read == nullptr) return std::nullopt;
  unsigned current = 0, pending = 0;
  const int error = read(device_, &current, &pending);
  if (error == kNotSupported) return "unsupported";
  if (error != 0) return std::nullopt;
  return current == 0 ? "disabled" : "enabled";
}

std::optional<int> Nvml::power_limit_w() const { return to_watts(reading("nvmlDeviceGetEnforcedPowerLimit")); }

std::optional<int> Nvml::sm_clock_max_mhz() const { return to_int(reading("nvmlDeviceGetMaxClockInfo", kSmClock)); }

std::optional<int> Nvml::memory_clock_max_mhz() const { return to_int(reading("nvmlDeviceGetMaxClockInfo", kMemoryClock)); }

Json Nvml::sample() const {
  Json state;
  state.field("sm_mhz", to_int(reading("nvmlDeviceGetClockInfo", kSmClock)));
  state.field("mem_mhz", to_int(reading("nvmlDeviceGetClockInfo", kMemoryClock)));
  state.field("temperature_c", to_int(reading("nvmlDeviceGetTemperature", kGpuTemperature)));
  state.field("power_w", to_watts(reading("nvmlDeviceGetPowerUsage")));
  const std::optional<unsigned long long> bits = throttle_bits();
  if (!bits) return state.null("throttle").null("throttle_bits");
  return state.field("throttle", reason_names(*bits)).field("throttle_bits", static_cast<uint64_t>(*bits));
}
