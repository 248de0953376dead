// Small kernels whose ptxas -v output has one feature each. record.sh compiles
// them; nothing runs them.

namespace {

// A frame with no spills: an array indexed at run time stays in memory.
__device__ __noinline__ float table_lookup(float x, int n) {
  float a[24];
  for (int i = 0; i < 24; i++) a[i] = x * i;
  for (int i = 0; i < n; i++) a[(i * 3) % 24] += a[(i * 7 + n) % 24];
  return a[n % 24];
}

__global__ void anonymous(float *out, int n) { out[threadIdx.x] = table_lookup(out[threadIdx.x], n); }

}  // namespace

static __global__ void internal(float *out) { out[threadIdx.x] = 1.0f; }

// A callee that two kernels reach: its lines are printed once for each.
__device__ __noinline__ float polynomial(float x, int n) {
  float y = 0;
  for (int i = 0; i < n; i++) y = y * x + i;
  return y;
}

__global__ void calls_once(float *out, int n) { out[threadIdx.x] = polynomial(out[threadIdx.x], n); }

__global__ void calls_twice(float *out, int n) {
  out[threadIdx.x] = polynomial(out[threadIdx.x], n) + table_lookup(out[threadIdx.x + 1], n);
}

// Recursion: the stack size cannot be determined, and the spills are the
// callee's.
__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

__global__ void recursive(int *out, int n) { out[threadIdx.x] = fibonacci(n); }

template <typename T, int Pad>
__global__ void transpose(const T *in, T *out, int n) {
  __shared__ T tile[32][32 + Pad];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  tile[threadIdx.y][threadIdx.x] = in[y * n + x];
  __syncthreads();
  out[x * n + y] = tile[threadIdx.x][threadIdx.y];
}

template __global__ void transpose<float, 0>(const float *, float *, int);
template __global__ void transpose<float, 1>(const float *, float *, int);
template __global__ void transpose<double, 1>(const double *, double *, int);

// More live values than 32 registers can hold.
__global__ void __launch_bounds__(1024, 2) spills(const float *in, float *out, int n) {
  float a[64];
#pragma unroll
  for (int i = 0; i < 64; i++) a[i] = in[threadIdx.x + i * n];
#pragma unroll 1
  for (int k = 0; k < n; k++) {
#pragma unroll
    for (int i = 0; i < 64; i++) a[i] = a[i] * a[(i + 17) % 64] + in[k];
  }
#pragma unroll
  for (int i = 0; i < 64; i++) out[threadIdx.x + i * n] = a[i];
}

__global__ void dynamic_shared(float *out) {
  extern __shared__ float buffer[];
  buffer[threadIdx.x] = out[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = buffer[blockDim.x - 1 - threadIdx.x];
}

// Three named barriers.
__global__ void named_barriers(float *out) {
  __shared__ float s[128];
  s[threadIdx.x] = out[threadIdx.x];
  asm volatile("bar.sync 1, 128;" ::: "memory");
  s[threadIdx.x] += s[127 - threadIdx.x];
  asm volatile("bar.sync 2, 128;" ::: "memory");
  out[threadIdx.x] = s[threadIdx.x];
}

__constant__ float coefficients[32];

__global__ void constants(float *out) { out[threadIdx.x] = coefficients[threadIdx.x % 32]; }

__global__ void texture(cudaTextureObject_t t, float *out) { out[threadIdx.x] = tex1Dfetch<float>(t, threadIdx.x); }

#ifdef WGMMA
// A wgmma pipeline that spans function calls: ptxas serializes it and says so
// (C7510).
__device__ __noinline__ void issue(float (&d)[4], unsigned long long a, unsigned long long b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "l"(a), "l"(b));
}

__global__ void wgmma_call(float *out, unsigned long long a, unsigned long long b) {
  float d[4] = {0, 0, 0, 0};
  asm volatile("wgmma.fence.sync.aligned;");
  issue(d, a, b);
  issue(d, a + 1, b);
  asm volatile("wgmma.commit_group.sync.aligned;");
  asm volatile("wgmma.wait_group.sync.aligned 0;");
  for (int i = 0; i < 4; i++) out[threadIdx.x * 4 + i] = d[i];
}
#endif

void launch(float *out, int n) {
  anonymous<<<1, 1>>>(out, n);
  internal<<<1, 1>>>(out);
}
