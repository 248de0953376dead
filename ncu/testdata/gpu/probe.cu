// One kernel for each thing that the catalogue has to tell apart on Hopper.
// Build: nvcc -O3 -arch=sm_90a -o probe probe.cu
#include <cstdint>
#include <cstdio>
#include <cuda_fp16.h>
#include <mma.h>

constexpr int kBlocks = 132, kRounds = 4096;

// Matrix instructions of one warp.
__global__ void probe_mma(float* out) {
  using namespace nvcuda;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> b;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
  wmma::fill_fragment(a, __float2half(threadIdx.x & 1));
  wmma::fill_fragment(b, __float2half(1.0f));
  wmma::fill_fragment(c, 0.0f);
  for (int i = 0; i < kRounds; ++i) wmma::mma_sync(c, a, b, c);
  out[blockIdx.x * blockDim.x + threadIdx.x] = c.x[0];
}

// A shared-memory matrix descriptor without swizzle.
__device__ uint64_t descriptor(const void* p) {
  uint64_t address = static_cast<uint64_t>(__cvta_generic_to_shared(p));
  return ((address & 0x3ffff) >> 4) | (uint64_t(128 >> 4) << 16) | (uint64_t(256 >> 4) << 32);
}

// Matrix instructions of a warp group: 64 x 16 x 16 in half precision.
__global__ void probe_wgmma(float* out) {
#if __CUDA_ARCH_FEAT_SM90_ALL
  __shared__ alignas(128) half a[64 * 16], b[16 * 16];
  for (int i = threadIdx.x; i < 64 * 16; i += blockDim.x) a[i] = __float2half(1.0f);
  for (int i = threadIdx.x; i < 16 * 16; i += blockDim.x) b[i] = __float2half(1.0f);
  __syncthreads();
  asm volatile("fence.proxy.async;" ::: "memory");
  uint64_t da = descriptor(a), db = descriptor(b);
  float d[8] = {};
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  for (int i = 0; i < kRounds; ++i) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0,%1,%2,%3,%4,%5,%6,%7}, %8, %9, 1, 1, 1, 0, 0;\n"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
        : "l"(da), "l"(db));
    asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
  }
  float sum = 0;
  for (float x : d) sum += x;
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
#endif
}

// Each request of a warp hits one bank 32 times: 31 wavefronts too many.
__global__ void probe_conflicts(float* out) {
  __shared__ float s[32 * 32];
  volatile float* v = s;
  float sum = 0;
  v[threadIdx.x * 32] = 1.0f;
  __syncwarp();
  for (int i = 0; i < 32; ++i) sum += v[threadIdx.x * 32 + i];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// Neither matrix instructions nor conflicts: what must stay 0.
__global__ void probe_plain(float* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = 2.0f * i;
}

// An array that is indexed at run time lives in local memory.
__global__ void probe_local(float* out, int n) {
  float a[64];
  for (int i = 0; i < 64; ++i) a[i] = i * n;
  float sum = 0;
  for (int i = 0; i < 64; ++i) sum += a[(i * n + threadIdx.x) & 63];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

int main() {
  float* out;
  if (cudaMalloc(&out, kBlocks * 128 * sizeof(float)) != cudaSuccess) return 1;
  probe_mma<<<kBlocks, 128>>>(out);
  probe_wgmma<<<kBlocks, 128>>>(out);
  probe_conflicts<<<kBlocks, 32>>>(out);
  probe_plain<<<kBlocks, 128>>>(out);
  probe_local<<<kBlocks, 128>>>(out, 3);
  cudaError_t e = cudaDeviceSynchronize();
  if (e != cudaSuccess) {
    fprintf(stderr, "%s\n", cudaGetErrorString(e));
    return 1;
  }
  puts("done, \"all\" of it");
}
