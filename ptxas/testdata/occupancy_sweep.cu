// Prints, as CSV, how many blocks per SM the CUDA runtime says are resident for
// many launches: kernels with different numbers of registers, static shared
// memory and barriers, times block sizes, dynamic shared memory and carve-outs.
// Registers, static shared memory and the largest block are those that the
// runtime reports for the kernel. Nothing is launched.
//
//   nvcc -O3 -arch=native occupancy_sweep.cu -o /tmp/sweep && /tmp/sweep > occupancy_sweep.h200.csv
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

static void check(cudaError_t e, const char *what) {
  if (e == cudaSuccess) return;
  fprintf(stderr, "occupancy_sweep: %s: %s\n", what, cudaGetErrorString(e));
  exit(1);
}

// Live values in registers, a static array, and barriers 0 to Barriers-1.
template <int Values, int SharedBytes, int Barriers>
__global__ void kernel(float *out, int n) {
  __shared__ char array[SharedBytes > 0 ? SharedBytes : 1];
  float a[Values];
#pragma unroll
  for (int i = 0; i < Values; i++) a[i] = out[threadIdx.x + i * 1024];
#pragma unroll 1
  for (int k = 0; k < n; k++) {
#pragma unroll
    for (int i = 0; i < Values; i++) a[i] = a[i] * a[(i + 7) % Values] + k;
  }
  if (SharedBytes > 0) array[threadIdx.x] = (char)n;
  if (Barriers > 0) asm volatile("bar.sync 0;" ::: "memory");
#define BARRIER(b) \
  if (Barriers > b) asm volatile("bar.sync " #b ", 1024;" ::: "memory");
  BARRIER(1) BARRIER(2) BARRIER(3) BARRIER(4) BARRIER(5) BARRIER(6) BARRIER(7) BARRIER(8)
  BARRIER(9) BARRIER(10) BARRIER(11) BARRIER(12) BARRIER(13) BARRIER(14) BARRIER(15)
  if (SharedBytes > 0) a[0] += array[(threadIdx.x * 7 + n) % (SharedBytes > 0 ? SharedBytes : 1)];
#pragma unroll
  for (int i = 0; i < Values; i++) out[threadIdx.x + i * 1024] = a[i];
}

static int rows = 0, architecture = 0;

template <int Values, int SharedBytes, int Barriers>
void sweep() {
  auto k = kernel<Values, SharedBytes, Barriers>;
  cudaFuncAttributes a;
  check(cudaFuncGetAttributes(&a, k), "cudaFuncGetAttributes");
  int device, optin;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&optin, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "cudaDeviceGetAttribute");
  const int blocks[] = {1, 32, 96, 128, 160, 256, 384, 512, 640, 1024};
  const int dynamics[] = {0, 1000, 7168, 20000, 47000, 60000, 100000, 200000};
  const int carveouts[] = {cudaSharedmemCarveoutDefault, 10, 50};
  for (int carveout : carveouts) {
    check(cudaFuncSetAttribute(k, cudaFuncAttributePreferredSharedMemoryCarveout, carveout), "carve-out");
    for (int dynamic : dynamics) {
      if (dynamic + (int)a.sharedSizeBytes > optin) continue;
      check(cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, dynamic), "dynamic shared memory");
      for (int block : blocks) {
        if (block > a.maxThreadsPerBlock || (carveout != cudaSharedmemCarveoutDefault && block != 128)) continue;
        int resident;
        check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, k, block, dynamic), "occupancy");
        printf("\"kernel<%d,%d,%d>\",%d.%d,%d,%d,%d,%d,%d,%d,%d,%d\n", Values, SharedBytes, Barriers, architecture / 10,
               architecture % 10, a.numRegs, (int)a.sharedSizeBytes, dynamic, block, Barriers, carveout, a.maxThreadsPerBlock,
               resident);
        rows++;
      }
    }
  }
}

int main() {
  int device, major, minor;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "compute capability");
  check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device), "compute capability");
  architecture = 10 * major + minor;
  printf("kernel,arch,registers,static,dynamic,block,barriers,carveout_percent,max_threads,blocks\n");
  sweep<1, 0, 0>();
  sweep<8, 0, 1>();
  sweep<24, 0, 0>();
  sweep<24, 1024, 2>();
  sweep<40, 6000, 0>();
  sweep<40, 0, 5>();
  sweep<60, 16384, 1>();
  sweep<60, 0, 8>();
  sweep<90, 0, 0>();
  sweep<90, 40000, 3>();
  sweep<120, 0, 16>();
  sweep<160, 0, 0>();
  sweep<200, 128, 1>();
  sweep<230, 0, 0>();
  fprintf(stderr, "occupancy_sweep: %d configurations\n", rows);
  return rows >= 200 ? 0 : 1;
}
