// Prints what the toolkit's own cuda_occupancy.h computes for pseudo-random
// launches on every architecture, as CSV. Needs the header, no GPU:
//
//   g++ -I"$CUDA_HOME/include" occupancy_reference.cpp -o /tmp/r && /tmp/r > occupancy_reference.csv
//
// The header wants the device's properties from its caller; those that are not
// computed by the header itself are given in `devices`.
#include <cstddef>
#include <cstdio>

#include <cuda_occupancy.h>

struct Device {
  int major, minor, warps, shared_kib, reserved;
};

static const Device devices[] = {
    {7, 0, 64, 96, 0},     {7, 2, 64, 96, 0},     {7, 5, 32, 64, 0},      {8, 0, 64, 164, 1024},
    {8, 6, 48, 100, 1024}, {8, 7, 48, 164, 1024}, {8, 9, 48, 100, 1024},  {9, 0, 64, 228, 1024},
    {10, 0, 64, 228, 1024}, {10, 1, 48, 228, 1024}, {10, 3, 64, 228, 1024}, {11, 0, 48, 228, 1024},
    {12, 0, 48, 100, 1024}, {12, 1, 48, 100, 1024},
};

static unsigned state = 1;

static int pick(int n) {  // 0 to n-1
  state = state * 1664525u + 1013904223u;
  return (int)((state >> 8) % (unsigned)n);
}

int main() {
  printf("arch,registers,static,dynamic,block,barriers,carveout_percent,blocks,limit_registers,limit_shared,limit_warps,limit_blocks,limit_barriers\n");
  for (const Device &d : devices) {
    for (int i = 0; i < 100; i++) {
      cudaOccDeviceProp p = cudaOccDeviceProp();
      p.computeMajor = d.major;
      p.computeMinor = d.minor;
      p.maxThreadsPerBlock = 1024;
      p.maxThreadsPerMultiprocessor = d.warps * 32;
      p.regsPerBlock = p.regsPerMultiprocessor = 65536;
      p.warpSize = 32;
      p.sharedMemPerBlock = 48 * 1024;
      p.sharedMemPerMultiprocessor = (size_t)d.shared_kib * 1024;
      p.sharedMemPerBlockOptin = p.sharedMemPerMultiprocessor - d.reserved;
      p.reservedSharedMemPerBlock = d.reserved;
      p.numSms = 1;
      cudaOccFuncAttributes a = cudaOccFuncAttributes();
      a.maxThreadsPerBlock = 1024;
      a.numRegs = 1 + pick(255);
      a.sharedSizeBytes = pick(3) ? 0 : pick(48 * 1024);
      int dynamic = pick(2) ? 0 : pick(d.shared_kib * 1024);
      a.maxDynamicSharedSizeBytes = dynamic;
      a.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
      a.numBlockBarriers = pick(17);
      int block = pick(2) ? 32 * (1 + pick(32)) : 1 + pick(1024);
      cudaOccDeviceState s;
      s.carveoutConfig = pick(2) ? SHAREDMEM_CARVEOUT_DEFAULT : 1 + pick(100);
      cudaOccResult r;
      if (cudaOccMaxActiveBlocksPerMultiprocessor(&r, &p, &a, &s, block, dynamic) != CUDA_OCC_SUCCESS) continue;
      printf("%d.%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d\n", d.major, d.minor, a.numRegs, (int)a.sharedSizeBytes, dynamic, block,
             a.numBlockBarriers, s.carveoutConfig, r.activeBlocksPerMultiprocessor, r.blockLimitRegs, r.blockLimitSharedMem,
             r.blockLimitWarps, r.blockLimitBlocks, r.blockLimitBarriers);
    }
  }
}
