// nvml.h: clocks, power, temperature and throttle reasons, read through the
// driver's management library where there is one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "json.h"

// An Nvml reads one device. Every reading is optional: a library, a symbol or a
// sensor that is missing gives an absent value, never a number.
class Nvml {
 public:
  // open finds the device by its UUID ("GPU-…"). It returns the reason when there
  // is nothing to read from, and an empty string when there is.
  std::string open(const std::string& uuid);

  std::optional<std::string> driver() const;        // driver version
  std::optional<std::string> mig() const;           // disabled, enabled or unsupported
  std::optional<int> power_limit_w() const;         // W
  std::optional<int> sm_clock_max_mhz() const;      // MHz
  std::optional<int> memory_clock_max_mhz() const;  // MHz

  // sample is the state at this moment: clocks in MHz, temperature in °C, power
  // in W, and the reasons that hold the clocks down, by name and as NVML's bits.
  Json sample() const;

 private:
  void* symbol(const char* name) const;
  std::optional<unsigned> reading(const char* name) const;
  std::optional<unsigned> reading(const char* name, int what) const;
  std::optional<unsigned long long> throttle_bits() const;

  void* library_ = nullptr;
  void* device_ = nullptr;  // nvmlDevice_t
};
