// One kernel for each thing that the catalogue has to tell apart on Hopper.
// Build: nvcc -O3 -arch=sm_90a -o probe probe.cu
#include <cstdint>
#include <cstdio>
#include <cuda_fp16.h>
#include <mma.h>

constexpr int kBlocks = 132, kRounds = 4096;

// Products of one warp, 16 x 16 x 16, two instructions each. b comes from memory
// and all sums are used: otherwise the compiler drops one as a copy of the other.
template <class In, class Out>
__device__ void products(float* out) {
  using namespace nvcuda;
  __shared__ In b_values[16 * 16];
  for (int i = threadIdx.x; i < 16 * 16; i += blockDim.x) b_values[i] = In(i & 3);
  __syncthreads();
  wmma::fragment<wmma::matrix_a, 16, 16, 16, In, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, In, wmma::col_major> b;
  wmma::fragment<wmma::accumulator, 16, 16, 16, Out> c;
  wmma::fill_fragment(a, In(threadIdx.x & 1));
  wmma::load_matrix_sync(b, b_values, 16);
  wmma::fill_fragment(c, Out(0));
  for (int i = 0; i < kRounds; ++i) wmma::mma_sync(c, a, b, c);
  float sum = 0;
  for (int i = 0; i < c.num_elements; ++i) sum += c.x[i];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

__global__ void probe_mma(float* out) { products<half, float>(out); }
__global__ void probe_mma_int(float* out) { products<signed char, int>(out); }

// Products in double precision, 8 x 8 x 4.
__global__ void probe_mma_double(float* out) {
  using namespace nvcuda;
  wmma::fragment<wmma::matrix_a, 8, 8, 4, double, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, 8, 8, 4, double, wmma::col_major> b;
  wmma::fragment<wmma::accumulator, 8, 8, 4, double> c;
  wmma::fill_fragment(a, double(threadIdx.x & 1));
  wmma::fill_fragment(b, 1.0);
  wmma::fill_fragment(c, 0.0);
  for (int i = 0; i < kRounds; ++i) wmma::mma_sync(c, a, b, c);
  out[blockIdx.x * blockDim.x + threadIdx.x] = c.x[0] + c.x[1];
}

// A shared-memory matrix descriptor without swizzle.
__device__ uint64_t descriptor(const void* p) {
  uint64_t address = static_cast<uint64_t>(__cvta_generic_to_shared(p));
  return ((address & 0x3ffff) >> 4) | (uint64_t(128 >> 4) << 16) | (uint64_t(256 >> 4) << 32);
}

// Matrix instructions of a warp group; its arguments are 32 bytes a row.
#if __CUDA_ARCH_FEAT_SM90_ALL
#define PROBE_WGMMA(name, instruction, type, constraint, scales)                                                   \
  __global__ void name(float* out) {                                                                               \
    __shared__ alignas(128) int a[64 * 8], b[16 * 8];                                                              \
    for (int i = threadIdx.x; i < 64 * 8; i += blockDim.x) a[i] = 0;                                               \
    for (int i = threadIdx.x; i < 16 * 8; i += blockDim.x) b[i] = 0;                                               \
    __syncthreads();                                                                                               \
    asm volatile("fence.proxy.async;" ::: "memory");                                                               \
    uint64_t da = descriptor(a), db = descriptor(b);                                                               \
    type d[8] = {};                                                                                                \
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");                                                        \
    for (int i = 0; i < kRounds; ++i) {                                                                            \
      asm volatile("wgmma.mma_async.sync.aligned." instruction " {%0,%1,%2,%3,%4,%5,%6,%7}, %8, %9, 1" scales ";\n" \
                   : "+" constraint(d[0]), "+" constraint(d[1]), "+" constraint(d[2]), "+" constraint(d[3]),       \
                     "+" constraint(d[4]), "+" constraint(d[5]), "+" constraint(d[6]), "+" constraint(d[7])        \
                   : "l"(da), "l"(db));                                                                            \
      asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");             \
    }                                                                                                              \
    float sum = 0;                                                                                                 \
    for (type x : d) sum += x;                                                                                     \
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;                                                              \
  }
#else
#define PROBE_WGMMA(name, instruction, type, constraint, scales) \
  __global__ void name(float*) {}
#endif

PROBE_WGMMA(probe_wgmma, "m64n16k16.f32.f16.f16", float, "f", ", 1, 1, 0, 0")
PROBE_WGMMA(probe_wgmma_fp8, "m64n16k32.f32.e4m3.e4m3", float, "f", ", 1, 1")
PROBE_WGMMA(probe_wgmma_int, "m64n16k32.s32.s8.s8", int, "r", "")

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
  probe_mma_int<<<kBlocks, 128>>>(out);
  probe_mma_double<<<kBlocks, 128>>>(out);
  probe_wgmma<<<kBlocks, 128>>>(out);
  probe_wgmma_fp8<<<kBlocks, 128>>>(out);
  probe_wgmma_int<<<kBlocks, 128>>>(out);
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
