// device.h: the device in use, and owners for what is allocated on it. Owners
// release without a check: after a fault every release fails, and the fault has
// been reported by then.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "failure.h"
#include "json.h"
#include "nvml.h"

class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  ~DeviceMemory() {
    if (pointer_ != nullptr) (void)cudaFree(pointer_);
  }

  void allocate(size_t bytes) { must(cudaMalloc(&pointer_, bytes), "allocating device memory"); }
  void* get() const { return pointer_; }

 private:
  void* pointer_ = nullptr;
};

// A Device is what the program runs on: the first one that CUDA shows it.
class Device {
 public:
  // open reads the properties and creates the context.
  void open();

  size_t l2_bytes() const { return static_cast<size_t>(properties_.l2CacheSize); }
  int multiprocessors() const { return properties_.multiProcessorCount; }
  size_t shared_bytes() const { return properties_.sharedMemPerBlockOptin; }
  size_t free_bytes() const;
  // flushing is memory of twice the L2, and 256 bytes after it. It is allocated once,
  // since that takes milliseconds, and before anything is measured, so that every
  // kernel finds the same room.
  const DeviceMemory& flushing() const { return flushing_; }
  size_t flushing_bytes() const { return 2 * l2_bytes(); }
  // restore_limits undoes what a kernel before changed about the device.
  void restore_limits() const;
  // drop_persisting_lines leaves no part of the L2 to anybody in particular, and
  // reset_persisting_lines lets lines go that a kernel asked to keep.
  void drop_persisting_lines() const;
  void reset_persisting_lines() const;
  const Nvml& nvml() const { return nvml_; }
  // settle keeps the device busy for a while, since the first work after a pause
  // runs at other clocks than what follows.
  void settle(double milliseconds) const;
  // describe is the device's entry in the config record. What NVML cannot tell is
  // "unavailable" where it is a name and null where it is a number.
  Json describe() const;

 private:
  cudaDeviceProp properties_ = {};
  int driver_ = 0, runtime_ = 0;
  std::string uuid_;
  std::vector<std::pair<cudaLimit, size_t>> limits_;
  DeviceMemory flushing_;
  Nvml nvml_;
};

// context_lost is true after an error that no later call can recover from.
bool context_lost();

// A Stream is non-blocking: work that a contender puts on the default stream is
// not ordered with it and cannot hide.
class Stream {
 public:
  Stream() { must(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "creating a stream"); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { (void)cudaStreamDestroy(stream_); }

  cudaStream_t get() const { return stream_; }
  void wait(const char* doing) const { must(cudaStreamSynchronize(stream_), doing); }
  // forget_window takes back what somebody said about memory that this stream uses.
  void forget_window() const {
    const cudaStreamAttrValue none = {};
    (void)cudaStreamSetAttribute(stream_, cudaStreamAttributeAccessPolicyWindow, &none);
    (void)cudaGetLastError();  // a device without windows says so
  }

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  Event() { must(cudaEventCreate(&event_), "creating an event"); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { (void)cudaEventDestroy(event_); }

  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};
