#pragma once

constexpr int kBlock = 128;
constexpr int kSharedBytes = 4096;  // of dynamic shared memory

#ifdef NO_LINES
#define LINE 0
#else
#define LINE __LINE__
#endif

#define CHECK(call)                                                       \
  do {                                                                    \
    cudaError_t error = (call);                                           \
    if (error != cudaSuccess) {                                           \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, LINE, #call);              \
      return 1;                                                           \
    }                                                                     \
  } while (0)

inline int rounded(int n) {
  assert(n >= 0);
  return (n + kBlock - 1) / kBlock * kBlock;
}
