/* gate.h: the two C interfaces of the harness.
 *
 * A kernel's shared object exports gate_run: one call of the op, enqueued.
 * An op's shared object exports gate_op_v1: what goes in, and what is right. It may
 * export gate_rows_v1: what is right of some rows.
 *
 * The header is C99 and needs no CUDA header: struct CUstream_st* is the type
 * that the CUDA runtime calls cudaStream_t, so a .cu file may write either.
 */
#ifndef GATE_H
#define GATE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- What a kernel exports ---------------------------------------------- */

/* Returned by gate_run or gate_prepare for a shape that the kernel refuses.
 * Every other value is 0 or a cudaError_t. */
#define GATE_UNSUPPORTED (-1)

struct CUstream_st;

/* One call of an op. All tensors are device pointers in the order of the op's
 * description; dims are in the op's order. The struct and what it points to
 * belong to the caller and are valid during the call only. */
typedef struct gate_call {
  int32_t num_dims;
  int32_t num_inputs;
  int32_t num_outputs;
  const int64_t* dims;
  const void* const* inputs;
  void* const* outputs;
  void* workspace; /* device memory with arbitrary content, NULL without */
  int64_t workspace_bytes;
} gate_call;

/* Enqueues one call on stream, and on no other stream; it does not wait, and
 * it allocates nothing. It is called once eagerly, on memory that holds no data
 * yet, and then only under stream capture, with other pointers each time: what it
 * enqueues is replayed later. Every element of every output must be written.
 * Inputs must not be, but for those that the op declares `inout`.
 * Returns 0, a cudaError_t (cudaGetLastError() after the last launch, say), or
 * GATE_UNSUPPORTED. */
int gate_run(const gate_call* call, struct CUstream_st* stream);

/* Optional. Called once per case before the first gate_run, never under
 * capture: the place for cudaFuncSetAttribute. Returns as gate_run. */
int gate_prepare(const gate_call* call);

/* Optional, and of a reference alone (a library that is compared with and never
 * judged): device memory where output number `output` of the call that gate_run
 * enqueued last will lie, for a library that allocates its results. It is asked for
 * each output after each captured call, and is call->outputs[output] where the call
 * writes there. The memory belongs to the kernel, and stays as it is until the next
 * call with the same outputs is enqueued or gate_prepare is called. */
void* gate_result(const gate_call* call, int32_t output);

/* ---- What an op exports -------------------------------------------------- */

/* Element types that the harness converts to double by itself. An op with
 * GATE_OPAQUE outputs brings its own to_double. */
enum {
  GATE_F64 = 1,
  GATE_F32 = 2,
  GATE_F16 = 3,
  GATE_BF16 = 4,
  GATE_OPAQUE = 5,
  GATE_I8 = 6,
  GATE_U8 = 7,
  GATE_I32 = 8,
  GATE_I64 = 9 /* exact up to 2^53, as a double holds it */
};

/* A gate_tensor is one input or output: contiguous elements of one type. */
typedef struct gate_tensor {
  const char* name;
  int32_t dtype;                            /* GATE_F64 … GATE_I64 */
  int32_t element_bytes;                    /* size of one element */
  int64_t (*elements)(const int64_t* dims); /* how many; below 1: the dims are refused */
} gate_tensor;

/* A gate_op describes one op. All arrays are static, and all functions may be
 * called from any thread; those that return int return 0, or anything else
 * for a failure. */
typedef struct gate_op {
  int32_t version; /* 1 */
  const char* name;

  int32_t num_dims;
  const char* const* dims; /* names, in the order in which dims are passed */

  int32_t num_inputs;
  const gate_tensor* inputs;
  int32_t num_outputs;
  const gate_tensor* outputs;

  /* Input classes. Class 0 is the ordinary one: latency is measured on it. */
  int32_t num_classes;
  const char* const* classes;

  /* Fills host buffers, one per input. The same arguments give the same bytes;
   * another seed gives other data. */
  int (*fill)(const int64_t* dims, int32_t input_class, uint64_t seed, void* const* inputs);

  /* Computes the exact result of those inputs in double precision, one buffer
   * of doubles per output. May use every core. */
  int (*reference)(const int64_t* dims, const void* const* inputs, double* const* outputs);

  /* Optional (NULL unless an output is GATE_OPAQUE): converts count elements
   * of output number `output` to double. */
  int (*to_double)(int32_t output, const void* elements, int64_t count, double* out);
} gate_op;

/* Returns the description; it lives as long as the shared object is loaded. */
const gate_op* gate_op_v1(void);

/* A gate_rows lets the harness compare some rows of results that take too long to
 * compute whole (`reference: {rows: N}` in op.yaml). Each output is `count` rows of
 * equal length, one after the other, the same number in every output. The harness
 * draws rows of every block, so that a block is what a kernel may treat in a way of
 * its own: a head, say. Where no input holds NaN or an infinity, no result may. */
typedef struct gate_rows {
  int64_t (*count)(const int64_t* dims);     /* rows of an output */
  int64_t (*in_block)(const int64_t* dims);  /* rows of a block; divides count */

  /* Computes those rows, which ascend, as reference does the whole: row number
   * rows[i] of each output is written to place i of its buffer. */
  int (*reference)(const int64_t* dims, const void* const* inputs, int64_t num_rows, const int64_t* rows, double* const* outputs);

  /* Optional (NULL): the rows that an input class is about, which are always
   * compared. Row `number` of them, from 0 on; -1 behind the last. */
  int64_t (*notable)(const int64_t* dims, int32_t input_class, int64_t number);
} gate_rows;

/* Optional. Returns the description; it lives as long as the shared object is loaded. */
const gate_rows* gate_rows_v1(void);

#ifdef __cplusplus
}
#endif

#endif /* GATE_H */
