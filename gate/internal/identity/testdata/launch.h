#pragma once

constexpr int kBlock = 128;
constexpr int kSharedBytes = 4096;  // of dynamic shared memory

#define CHECK(call)                                                       \
  do {                                                                    \
    cudaError_t error = (call);                                           \
    if (error != cudaSuccess) {                                           \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #call);          \
      return 1;                                                           \
    }                                                                     \
  } while (0)

inline int rounded(int n) {
  assert(n >= 0);
  return (n + kBlock - 1) / kBlock * kBlock;
}
