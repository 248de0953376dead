#include "judge.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace {

enum class Kind { finite, nan, plus, minus };

Kind kind_of(double x) { return std::isfinite(x) ? Kind::finite : std::isnan(x) ? Kind::nan : x > 0 ? Kind::plus : Kind::minus; }

// An Error sums up one output.
struct Error {
  double difference = 0, reference = 0;  // sums of squares
  double worst = -1;
  uint64_t worst_index = 0, nonfinite = 0, mismatched = 0;

  // Sums are those of one element after the other: a result does not depend on how
  // fast it was computed.
  void add_all(const std::vector<double>& values, const std::vector<double>& exacts) {
    double differences = 0, references = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      const double value = values[i], exact = exacts[i];
      if (!std::isfinite(value) || !std::isfinite(exact)) {
        if (kind_of(value) != kind_of(exact) && nonfinite++ == 0) worst_index = i;
        continue;
      }
      mismatched += value != exact;
      const double error = std::fabs(value - exact);
      differences += error * error;
      references += exact * exact;
      if (error > worst) {
        worst = error;
        if (nonfinite == 0) worst_index = i;
      }
    }
    difference += differences;
    reference += references;
  }
  double relative() const { return difference == 0 ? 0 : std::sqrt(difference / reference); }
};

std::string format(const char* text, double a, double b) {
  char line[128];
  std::snprintf(line, sizeof line, text, a, b);
  return line;
}

bool is_exact(const Options& options, const std::string& name) {
  return std::find(options.exact.begin(), options.exact.end(), name) != options.exact.end();
}

Error error_of_all(const Op& op, const Problem& problem, const Golden& golden, size_t output, const unsigned char* bytes, uint64_t& compared) {
  const std::vector<double> values = op.to_double(static_cast<int>(output), bytes, problem.output_bytes[output]);
  Error error;
  error.add_all(values, golden.outputs[output]);
  compared += values.size();
  return error;
}

// The rows of an output that are compared, one after the other.
Bytes rows_of(const Golden& golden, const unsigned char* output, size_t row_bytes) {
  Bytes gathered;
  gathered.reserve(golden.rows.size() * row_bytes);
  for (int64_t row : golden.rows) {
    const unsigned char* from = output + static_cast<size_t>(row) * row_bytes;
    gathered.insert(gathered.end(), from, from + row_bytes);
  }
  return gathered;
}

// Compares the drawn rows of one output. What is not finite outside of them is wrong as
// well where the inputs are finite.
Error error_of_rows(const Op& op, const Problem& problem, const Golden& golden, size_t output, const unsigned char* bytes, uint64_t& compared) {
  const size_t all = problem.output_bytes[output], row_bytes = all / static_cast<size_t>(problem.all_rows);
  const int number = static_cast<int>(output);
  const Bytes gathered = rows_of(golden, bytes, row_bytes);
  const uint64_t in_row = row_bytes / op.element_bytes(number);
  Error error;
  error.add_all(op.to_double(number, gathered.data(), gathered.size()), golden.outputs[output]);
  error.worst_index = static_cast<uint64_t>(golden.rows[error.worst_index / in_row]) * in_row + error.worst_index % in_row;
  compared += gathered.size() / op.element_bytes(number);
  const NonFinite everywhere = golden.finite ? op.nonfinite(number, bytes, all) : NonFinite{};
  if (everywhere.count > error.nonfinite) {
    error.nonfinite = everywhere.count;
    error.worst_index = everywhere.first;
  }
  return error;
}

}  // namespace

Distance distance(const Op& op, const Options& options, const Problem& problem, const Golden& golden, const unsigned char* outputs) {
  Distance found;
  for (size_t i = 0; i < problem.output_bytes.size(); ++i) {
    const int output = static_cast<int>(i);
    const uint64_t elements = problem.output_bytes[i] / op.element_bytes(output);
    const Error error = problem.sampled() ? error_of_rows(op, problem, golden, i, outputs, found.compared) : error_of_all(op, problem, golden, i, outputs, found.compared);
    found.nonfinite += error.nonfinite;
    if (is_exact(options, op.output_name(output))) found.mismatched += error.mismatched;
    else found.relative_error = std::max(found.relative_error, error.relative());
    if (error.nonfinite > 0 || error.worst > found.max_abs_error) found.max_abs_index = found.elements + error.worst_index;
    found.max_abs_error = std::max(found.max_abs_error, error.worst);
    found.elements += elements;
    outputs += problem.output_bytes[i];
  }
  if (found.nonfinite > 0) found.relative_error = found.max_abs_error = NAN;
  return found;
}

std::vector<std::string> Distance::reasons(const Tolerance& tolerance) const {
  std::vector<std::string> why;
  const std::string of_elements = " of " + std::to_string(elements) + " elements ";
  const std::string of_compared = " of " + std::to_string(compared) + (compared < elements ? " compared elements " : " elements ");
  if (nonfinite > 0) why.push_back(std::to_string(nonfinite) + of_elements + "are not finite where the reference is, or finite where it is not, or not finite in another way");
  if (mismatched > 0) why.push_back(std::to_string(mismatched) + of_compared + "differ from the exact result");
  if (nonfinite > 0) return why;
  if (tolerance.relative_error > 0 && !(relative_error <= tolerance.relative_error))
    why.push_back(format("relative error %.3g is above %.3g", relative_error, tolerance.relative_error));
  if (tolerance.max_abs_error > 0 && !(max_abs_error <= tolerance.max_abs_error))
    why.push_back(format("an element is off by %.3g, more than %.3g", max_abs_error, tolerance.max_abs_error));
  return why;
}

double relative_change(const Op& op, const Problem& problem, const unsigned char* a, const unsigned char* b) {
  double most = 0;
  for (size_t i = 0; i < problem.output_bytes.size(); ++i) {
    const std::vector<double> first = op.to_double(static_cast<int>(i), a, problem.output_bytes[i]);
    const std::vector<double> second = op.to_double(static_cast<int>(i), b, problem.output_bytes[i]);
    Error error;
    error.add_all(second, first);
    most = std::max(most, error.nonfinite > 0 ? INFINITY : error.relative());
    a += problem.output_bytes[i];
    b += problem.output_bytes[i];
  }
  return most;
}
