#include "device.h"

#include <chrono>
#include <cstdio>

#include "device_code.h"

namespace {

std::string format_uuid(const cudaUUID_t& uuid) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    char byte[3];
    std::snprintf(byte, sizeof byte, "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += byte;
  }
  return text;
}

}  // namespace

void Device::open() {
  must(cudaSetDevice(0), "selecting the device");
  must(cudaFree(nullptr), "creating a context");
  must(cudaGetDeviceProperties(&properties_, 0), "reading the device's properties");
  must(cudaDriverGetVersion(&driver_), "reading the driver's CUDA version");
  must(cudaRuntimeGetVersion(&runtime_), "reading the runtime's version");
  uuid_ = format_uuid(properties_.uuid);
  for (cudaLimit limit : {cudaLimitStackSize, cudaLimitMallocHeapSize, cudaLimitMaxL2FetchGranularity}) {
    size_t value = 0;
    if (cudaDeviceGetLimit(&value, limit) == cudaSuccess) limits_.emplace_back(limit, value);
  }
  (void)cudaGetLastError();
  must(prepare_dirty(shared_bytes()), "allowing shared memory");
  flushing_.allocate(flushing_bytes() + 256);
  must(cudaMemsetAsync(flushing_.get(), 0, flushing_bytes(), nullptr), "clearing memory");
  must(cudaDeviceSynchronize(), "clearing memory");
  const std::string reason = nvml_.open(uuid_);
  if (!reason.empty()) std::fprintf(stderr, "gate-harness: nvml unavailable: %s\n", reason.c_str());
}

size_t Device::free_bytes() const {
  size_t free = 0, total = 0;
  must(cudaMemGetInfo(&free, &total), "reading the memory's size");
  return free;
}

void Device::restore_limits() const {
  for (const auto& [limit, value] : limits_) (void)cudaDeviceSetLimit(limit, value);
  drop_persisting_lines();
}

void Device::drop_persisting_lines() const {
  (void)cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 0);
  reset_persisting_lines();
}

void Device::reset_persisting_lines() const {
  (void)cudaCtxResetPersistingL2Cache();
  (void)cudaGetLastError();  // a device without such lines says so
}

void Device::settle(double milliseconds) const {
  const Stream stream;
  unsigned char* memory = static_cast<unsigned char*>(flushing_.get());
  uint32_t* sink = reinterpret_cast<uint32_t*>(memory + flushing_bytes());
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double, std::milli>(milliseconds);
  while (std::chrono::steady_clock::now() < end) {
    for (int i = 0; i < 16; ++i) must(enqueue_read(memory, flushing_bytes(), sink, stream.get()), "settling the device");
    stream.wait("settling the device");
  }
}

Json Device::describe() const {
  Json device;
  device.field("name", properties_.name).field("uuid", uuid_);
  device.field("cc", std::to_string(properties_.major) + "." + std::to_string(properties_.minor));
  device.field("sms", properties_.multiProcessorCount).field("l2_bytes", properties_.l2CacheSize);
  device.field("memory_bytes", static_cast<uint64_t>(properties_.totalGlobalMem));
  device.field("driver", nvml_.driver().value_or("unavailable"));
  device.field("cuda_driver", driver_).field("cuda_runtime", runtime_);
  device.field("power_limit_w", nvml_.power_limit_w());
  device.field("mig", nvml_.mig().value_or("unavailable"));
  device.field("sm_clock_max_mhz", nvml_.sm_clock_max_mhz());
  return device.field("memory_clock_max_mhz", nvml_.memory_clock_max_mhz()).field("memory_bus_bits", properties_.memoryBusWidth);
}

bool context_lost() {
  (void)cudaGetLastError();  // forgets what is not sticky
  return cudaDeviceSynchronize() != cudaSuccess || cudaGetLastError() != cudaSuccess;
}
