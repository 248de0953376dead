// failure.h: what ends a unit of work early, and the check of CUDA return codes
// that raises it.
#pragma once

#include <cuda_runtime_api.h>

#include <optional>
#include <string>
#include <utility>

// A Failure is thrown inside a unit and becomes its error record.
struct Failure {
  // load, symbol, unsupported, cuda, capture, empty_graph, not_a_chain, output_changed,
  // not_alone, unsteady, too_fast, forged, died, memory, usage, op, tool
  std::string kind;
  std::string message;
  std::optional<int> code;          // a cudaError_t, where one is the cause
  std::optional<std::string> name;  // and its name

  Failure(std::string what, std::string text) : kind(std::move(what)), message(std::move(text)) {}
  Failure(std::string what, const std::string& doing, cudaError_t error)
      : kind(std::move(what)),
        message(doing + ": " + cudaGetErrorString(error)),
        code(static_cast<int>(error)),
        name(cudaGetErrorName(error)) {}
};

// must throws a Failure of kind cuda unless error is cudaSuccess; doing says what
// was tried, in a few words.
inline void must(cudaError_t error, const char* doing) {
  if (error != cudaSuccess) throw Failure("cuda", doing, error);
}
