// peaks.h: what the card can do at best, measured before a kernel is loaded.
#pragma once

#include <string>
#include <vector>

#include "device.h"
#include "json.h"
#include "wire.h"

// Peaks are the highest rates that were seen: of memory and of the L2 by Traffic, in
// bytes a nanosecond (a copied byte counts twice), and of each of units(), in
// operations a nanosecond, 0 where it was not measured or nothing is known to reach
// the peak, with the clock meanwhile.
struct Peaks {
  std::vector<double> cold, warm, flops, sm_mhz;

  void put(Message& message) const { message.put(cold).put(warm).put(flops).put(sm_mhz); }
  static Peaks get(Message& message);
  Json record(const std::string& unit) const;
};

// unit_index is the place of a unit in units(), -1 for "". It throws a Failure of kind
// usage for any other name.
int unit_index(const std::string& name);

// measure_peaks measures memory, and the arithmetic of one unit; -1 is none.
Peaks measure_peaks(const Device& device, int unit);
