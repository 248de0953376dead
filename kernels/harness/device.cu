#include "device.h"

#include <cstdio>

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
  const std::string reason = nvml_.open(uuid_);
  if (!reason.empty()) std::fprintf(stderr, "gate-harness: nvml unavailable: %s\n", reason.c_str());
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
  return device.field("sm_clock_max_mhz", nvml_.sm_clock_max_mhz());
}

bool context_lost() {
  (void)cudaGetLastError();  // forgets what is not sticky
  return cudaDeviceSynchronize() != cudaSuccess || cudaGetLastError() != cudaSuccess;
}
