// A relocatable unit without a kernel, and, with -DKERNEL, one that calls it.

#ifdef KERNEL
extern __device__ float external(float x, int n);

__device__ __noinline__ float local(float x, int n) {
  float a[8];
  for (int i = 0; i < 8; i++) a[i] = x * i;
  for (int i = 0; i < n; i++) a[i % 8] += a[(i * 3 + n) % 8];
  return a[n % 8];
}

static __global__ void unrelated(float *out) { out[threadIdx.x] = 1.0f; }

__global__ void caller(float *out, int n) { out[threadIdx.x] = local(external(out[n], n), n); }

void launch(float *out) {
  unrelated<<<1, 1>>>(out);
  caller<<<1, 1>>>(out, 1);
}
#else
__device__ float external(float x, int n) {
  float a[10];
  for (int i = 0; i < 10; i++) a[i] = x * i;
  for (int i = 0; i < n; i++) a[i % 10] += a[(i * 3 + n) % 10];
  return a[n % 10];
}
#endif
