// The op attention: O = softmax(Q Kᵀ / √D) V in FP16, non-causal, for contiguous
// [B, H, S, D] tensors. This file makes its inputs, one class for each way in
// which an implementation can be wrong, and computes its exact result. README.md
// says which defect each class is there for.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "gate.h"

namespace {

// ---- Shapes ---------------------------------------------------------------

struct Shape {
  int64_t batch, heads, length, dim;

  explicit Shape(const int64_t* dims) : batch(dims[0]), heads(dims[1]), length(dims[2]), dim(dims[3]) {}

  int64_t all_heads() const { return batch * heads; }
  int64_t head_size() const { return length * dim; }
};

// Elements of each of the four tensors; 0 where the product is out of range.
int64_t elements(const int64_t* dims) {
  constexpr int64_t max_elements = int64_t{1} << 33;
  int64_t product = 1;
  for (int i = 0; i < 4; ++i) {
    if (dims[i] < 1 || dims[i] > max_elements / product) return 0;
    product *= dims[i];
  }
  return product;
}

// ---- Threads ----------------------------------------------------------------

// Calls task(i) for every i below count, on every core. What a thread keeps from one
// task to the next is made by make(), once for each thread.
template <class Make, class Task>
void in_parallel(int64_t count, Make make, Task task) {
  std::atomic<int64_t> next{0};
  const auto work = [&] {
    auto kept = make();
    for (int64_t i; (i = next.fetch_add(1)) < count;) task(i, kept);
  };
  std::vector<std::thread> threads;
  for (int64_t i = 1; i < std::min<int64_t>(count, std::thread::hardware_concurrency()); ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
}

// ---- FP16, by its definition ------------------------------------------------

// By the fields of a double, since this runs once for each element.
uint16_t to_half(double value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double size = std::fabs(value);
  if (std::isnan(value)) return 0x7E00;
  if (size >= 65520) return sign | 0x7C00;  // what rounds beyond the largest finite
  if (size < 0x1p-14) {
    const double steps = size * 0x1p24 + 0x1p52;  // the sum has no bits below 1: it is rounded, ties to even
    return sign | static_cast<uint16_t>(steps - 0x1p52);
  }
  uint64_t fields;
  std::memcpy(&fields, &size, sizeof fields);
  // 42 bits are dropped. A mantissa that rounds up to 2^11 carries into the exponent
  // by itself, whose bias is 1023 in a double and 15 here.
  fields += (uint64_t{1} << 41) - 1 + ((fields >> 42) & 1);
  return sign | static_cast<uint16_t>((fields >> 42) - (uint64_t{1023 - 15} << 10));
}

double from_half(uint16_t bits) {
  const int field = (bits >> 10) & 31, mantissa = bits & 1023;
  const double sign = bits & 0x8000 ? -1 : 1;
  if (field == 31) return mantissa != 0 ? NAN : sign * INFINITY;
  if (field == 0) return sign * mantissa * 0x1p-24;
  const uint64_t fields = static_cast<uint64_t>(field + 1023 - 15) << 52 | static_cast<uint64_t>(mantissa) << 42;
  double size;
  std::memcpy(&size, &fields, sizeof size);
  return sign * size;
}

// ---- Random numbers -----------------------------------------------------------

// The two factors of the Box-Muller transform, each at the middles of equal steps: a
// case may have 10^8 elements, and their logarithms would take seconds.
struct Normal {
  static constexpr int kBits = 14;
  static constexpr uint64_t kSteps = uint64_t{1} << kBits;
  std::vector<double> radius, cosine;

  Normal() : radius(kSteps), cosine(kSteps) {
    for (uint64_t i = 0; i < kSteps; ++i) {
      const double middle = (static_cast<double>(i) + 0.5) / static_cast<double>(kSteps);
      radius[i] = std::sqrt(-2 * std::log(middle));
      cosine[i] = std::cos(2 * M_PI * middle);
    }
  }
  double at(uint64_t bits) const { return radius[bits >> (64 - kBits)] * cosine[(bits >> (64 - 2 * kBits)) % kSteps]; }
};

// A Noise gives N(0, 1), up to 4.6, by position, so that the values do not depend on
// the order in which they are drawn, nor on the number of threads.
class Noise {
 public:
  Noise(uint64_t seed, uint64_t stream) : key_(mix(seed ^ mix(stream))), normal_(tables()) {}

  double at(int64_t index) const { return normal_.at(mix(key_ + static_cast<uint64_t>(index) * 0x9E3779B97F4A7C15u)); }

 private:
  static const Normal& tables() {
    static const Normal normal;
    return normal;
  }
  // The finaliser of splitmix64.
  static uint64_t mix(uint64_t x) {
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
  }

  uint64_t key_;
  const Normal& normal_;
};

// ---- Input classes --------------------------------------------------------------

enum Class {
  kNormal,
  kScaled8,
  kScaled64,
  kOverflowF16,
  kEqualKeys,
  kDominantFirst,
  kDominantQuarter,
  kDominantMiddle,
  kDominantThreeQuarter,
  kDominantLast,
  kUnitValues,
  kOffsetValues,
  kPermutedKeys,
  kDistinctHeads,
  kNonfiniteRows,
  kNonfiniteKeys,
  kNonfiniteValues,
  kSubnormalValues,
  kClasses,
};

const char* const kClassNames[kClasses] = {
    "normal",        "scaled_8",        "scaled_64",      "overflow_f16",           "equal_keys",
    "dominant_first", "dominant_quarter", "dominant_middle", "dominant_three_quarter", "dominant_last",
    "unit_values",   "offset_values",   "permuted_keys",  "distinct_heads",         "nonfinite_rows",
    "nonfinite_keys", "nonfinite_values", "subnormal_values",
};

// A Tensor is written element by element: of head, row, column.
struct Tensor {
  uint16_t* data;
  Shape shape;

  template <class F>
  void fill(F value) const {
    const auto nothing = [] { return 0; };
    in_parallel(shape.all_heads(), nothing, [&](int64_t head, int) {
      int64_t i = head * shape.head_size();
      for (int64_t row = 0; row < shape.length; ++row)
        for (int64_t column = 0; column < shape.dim; ++column, ++i) data[i] = to_half(value(head, row, column, i));
    });
  }

  void set(int64_t head, int64_t row, int64_t column, double value) const {
    data[head * shape.head_size() + row * shape.dim + column] = to_half(value);
  }
};

struct Inputs {
  Tensor q, k, v;
  Noise q_noise, k_noise, v_noise;
  Shape shape;

  Inputs(const Shape& shape, uint64_t seed, void* const* buffers)
      : q{static_cast<uint16_t*>(buffers[0]), shape},
        k{static_cast<uint16_t*>(buffers[1]), shape},
        v{static_cast<uint16_t*>(buffers[2]), shape},
        q_noise(seed, 0),
        k_noise(seed, 1),
        v_noise(seed, 2),
        shape(shape) {}

  void fill_normal() const {
    fill(q, q_noise);
    fill(k, k_noise);
    fill(v, v_noise);
  }
  static void fill(const Tensor& tensor, const Noise& noise) {
    tensor.fill([&](int64_t, int64_t, int64_t, int64_t i) { return noise.at(i); });
  }
};

// Larger logits: from a soft choice to nearly one key a row.
void scale_queries(const Inputs& in, double factor) {
  in.q.fill([&](int64_t, int64_t, int64_t, int64_t i) { return factor * in.q_noise.at(i); });
}

// Scores far beyond FP16's 65504. All products are multiples of 256 and sums stay
// below 2^24 of them, so that FP32 holds every partial sum exactly, in any order:
// the class asks for range, and no rounding of a correct kernel can fail it.
void overflow_f16(const Inputs& in) {
  const auto coarse = [](double x) { return 16 * std::nearbyint(200 * x / 16); };
  in.q.fill([&](int64_t, int64_t, int64_t, int64_t i) { return coarse(in.q_noise.at(i)); });
  in.k.fill([&](int64_t, int64_t, int64_t, int64_t i) { return coarse(in.k_noise.at(i)); });
}

// All keys of a head are its first one: every weight is 1/S.
void equal_keys(const Inputs& in) {
  in.k.fill([&](int64_t head, int64_t, int64_t column, int64_t) {
    return in.k_noise.at(head * in.shape.head_size() + column);
  });
}

// One key takes nearly all the weight of every query (a logit of 32 ± 4 beside
// ±1.4), so the output is that key's value.
void dominant_key(const Inputs& in, int64_t position) {
  in.q.fill([&](int64_t, int64_t, int64_t, int64_t i) { return in.q_noise.at(i) + 1; });
  for (int64_t head = 0; head < in.shape.all_heads(); ++head)
    for (int64_t column = 0; column < in.shape.dim; ++column) in.k.set(head, position, column, 4);
}

// Weights sum to 1, so the output is exactly 1.
void unit_values(const Inputs& in) {
  in.v.fill([](int64_t, int64_t, int64_t, int64_t) { return 1.0; });
}

// Equal weights, and values with a large mean: 328 of them sum up beyond FP16's
// largest number, and before that a sum in FP16 has lost their spread.
void offset_values(const Inputs& in) {
  equal_keys(in);
  in.v.fill([&](int64_t, int64_t, int64_t, int64_t i) { return 200 + in.v_noise.at(i); });
}

// Results below the smallest normal number of FP16: flushing them to zero shows.
void subnormal_values(const Inputs& in) {
  in.v.fill([&](int64_t, int64_t, int64_t, int64_t i) { return 2e-3 * in.v_noise.at(i); });
}

// Pairs of heads: the first is that of the normal class, and the second has the same
// queries, and the same keys and values in another order. The exact results of both are
// the same up to the rounding of a double, so a kernel's results of both orders are
// held to one result, in one call. A head without a partner is permuted by itself.
// Where S is a power of two, the order walks through it in steps of an odd stride near
// 0.6 S; any other S is reversed.
void permuted_keys(const Inputs& in) {
  const int64_t length = in.shape.length, heads = in.shape.all_heads(), stride = (length * 3 / 5) | 1;
  const bool power_of_two = (length & (length - 1)) == 0;
  const auto at = [&](int64_t head, int64_t row, int64_t column) { return head / 2 * 2 * in.shape.head_size() + row * in.shape.dim + column; };
  const auto source = [&](int64_t head, int64_t row, int64_t column) {
    const bool permuted = head % 2 == 1 || head == heads - 1;
    const int64_t from = !permuted ? row : power_of_two ? row * stride % length : length - 1 - row;
    return at(head, from, column);
  };
  in.q.fill([&](int64_t h, int64_t r, int64_t c, int64_t) { return in.q_noise.at(at(h, r, c)); });
  in.k.fill([&](int64_t h, int64_t r, int64_t c, int64_t) { return in.k_noise.at(source(h, r, c)); });
  in.v.fill([&](int64_t h, int64_t r, int64_t c, int64_t) { return in.v_noise.at(source(h, r, c)); });
}

// The values of a head lie around its number: reading another head's shows.
void distinct_heads(const Inputs& in) {
  in.v.fill([&](int64_t head, int64_t, int64_t, int64_t i) { return head + 1 + 0.1 * in.v_noise.at(i); });
}

// Three queries of the last head hold NaN, +∞ and −∞. Their rows are not finite;
// all others must be as if nothing had happened.
void nonfinite_rows(const Inputs& in) {
  const int64_t head = in.shape.all_heads() - 1, quarter = in.shape.length / 4, column = in.shape.dim / 2;
  in.q.set(head, quarter, column, NAN);
  in.q.set(head, 2 * quarter, column, INFINITY);
  in.q.set(head, 3 * quarter, column, -INFINITY);
}

// A key with NaN in the first head, which leaves nothing of it, and one with +∞ in
// the last: the queries that see it as +∞ give NaN, those that see −∞ go without it.
void nonfinite_keys(const Inputs& in) {
  in.k.set(0, in.shape.length / 2, in.shape.dim / 2, NAN);
  if (in.shape.all_heads() > 1) in.k.set(in.shape.all_heads() - 1, in.shape.length / 4, in.shape.dim / 2, INFINITY);
}

// One column of the last head's values each with NaN, +∞ and −∞. No other is touched.
void nonfinite_values(const Inputs& in) {
  const int64_t head = in.shape.all_heads() - 1, quarter = in.shape.length / 4;
  in.v.set(head, quarter, 0, NAN);
  in.v.set(head, 2 * quarter, in.shape.dim / 2, INFINITY);
  in.v.set(head, 3 * quarter, in.shape.dim - 1, -INFINITY);
}

int fill(const int64_t* dims, int32_t input_class, uint64_t seed, void* const* buffers) {
  const Shape shape(dims);
  // Classes draw from streams of their own, but for the one that permutes another.
  const uint64_t stream = input_class == kPermutedKeys ? kNormal : input_class;
  const Inputs in(shape, seed * kClasses + stream, buffers);
  in.fill_normal();
  switch (input_class) {
    case kNormal: return 0;
    case kScaled8: return scale_queries(in, 8), 0;
    case kScaled64: return scale_queries(in, 64), 0;
    case kOverflowF16: return overflow_f16(in), 0;
    case kEqualKeys: return equal_keys(in), 0;
    case kDominantFirst: return dominant_key(in, 0), 0;
    case kDominantQuarter: return dominant_key(in, shape.length / 4), 0;
    case kDominantMiddle: return dominant_key(in, shape.length / 2), 0;
    case kDominantThreeQuarter: return dominant_key(in, shape.length * 3 / 4), 0;
    case kDominantLast: return dominant_key(in, shape.length - 1), 0;
    case kUnitValues: return unit_values(in), 0;
    case kOffsetValues: return offset_values(in), 0;
    case kPermutedKeys: return permuted_keys(in), 0;
    case kDistinctHeads: return distinct_heads(in), 0;
    case kNonfiniteRows: return nonfinite_rows(in), 0;
    case kNonfiniteKeys: return nonfinite_keys(in), 0;
    case kNonfiniteValues: return nonfinite_values(in), 0;
    case kSubnormalValues: return subnormal_values(in), 0;
  }
  return 1;
}

// ---- The exact result -------------------------------------------------------------

// The keys and values of one head in double precision, K transposed so that the inner
// loops run along memory.
struct Head {
  Shape shape;
  const uint16_t* q;
  std::vector<double> k_transposed, v;

  Head(const Shape& shape, const void* const* inputs, int64_t head) : shape(shape), k_transposed(shape.head_size()), v(shape.head_size()) {
    const auto of_head = [&](int tensor) { return static_cast<const uint16_t*>(inputs[tensor]) + head * shape.head_size(); };
    q = of_head(0);
    const uint16_t* k = of_head(1);
    for (int64_t row = 0; row < shape.length; ++row)
      for (int64_t d = 0; d < shape.dim; ++d) k_transposed[d * shape.length + row] = from_half(k[row * shape.dim + d]);
    std::transform(of_head(2), of_head(2) + shape.head_size(), v.begin(), from_half);
  }

  // Softmax over all keys with the true maximum, then the weighted mean.
  void attend(int64_t row, std::vector<double>& scores, double* out) const {
    std::fill(scores.begin(), scores.end(), 0.0);
    for (int64_t d = 0; d < shape.dim; ++d) {
      const double x = from_half(q[row * shape.dim + d]);
      const double* column = &k_transposed[d * shape.length];
      for (int64_t key = 0; key < shape.length; ++key) scores[key] += x * column[key];
    }
    const double max = *std::max_element(scores.begin(), scores.end());
    const double scale = 1 / std::sqrt(static_cast<double>(shape.dim));
    double sum = 0;
    for (double& score : scores) sum += score = std::exp((score - max) * scale);
    std::fill(out, out + shape.dim, 0.0);
    for (int64_t key = 0; key < shape.length; ++key)
      for (int64_t d = 0; d < shape.dim; ++d) out[d] += scores[key] * v[key * shape.dim + d];
    for (int64_t d = 0; d < shape.dim; ++d) out[d] /= sum;
  }
};

constexpr int64_t kRowsAtOnce = 64;

// Up to kRowsAtOnce rows of one head, by their places in a list.
struct Block {
  int64_t head;
  size_t begin, end;
};

std::vector<Block> blocks_of(const Shape& shape, const std::vector<int64_t>& rows) {
  std::vector<Block> blocks;
  for (size_t i = 0; i < rows.size(); ++i) {
    const int64_t head = rows[i] / shape.length;
    const bool more = !blocks.empty() && blocks.back().head == head && i - blocks.back().begin < kRowsAtOnce;
    if (more) blocks.back().end = i + 1;
    else blocks.push_back({head, i, i + 1});
  }
  return blocks;
}

// What a thread keeps: the head that it computed last, and room for scores.
struct Kept {
  int64_t number = -1;
  std::vector<Head> head;  // none or one
  std::vector<double> scores;
};

// Rows of the result, counted over all heads; they ascend.
void attend_all(const Shape& shape, const void* const* inputs, const std::vector<int64_t>& rows, double* output) {
  const std::vector<Block> blocks = blocks_of(shape, rows);
  const auto make = [&] { return Kept{-1, {}, std::vector<double>(shape.length)}; };
  in_parallel(static_cast<int64_t>(blocks.size()), make, [&](int64_t number, Kept& kept) {
    const Block& block = blocks[number];
    if (block.head != kept.number) {
      kept.head.clear();
      kept.head.emplace_back(shape, inputs, kept.number = block.head);
    }
    for (size_t i = block.begin; i < block.end; ++i) kept.head[0].attend(rows[i] % shape.length, kept.scores, output + i * shape.dim);
  });
}

int reference(const int64_t* dims, const void* const* inputs, double* const* outputs) {
  const Shape shape(dims);
  std::vector<int64_t> rows(shape.all_heads() * shape.length);
  std::iota(rows.begin(), rows.end(), 0);
  attend_all(shape, inputs, rows, outputs[0]);
  return 0;
}

// ---- Some rows of it ----------------------------------------------------------------

int64_t count_rows(const int64_t* dims) { return dims[0] * dims[1] * dims[2]; }
int64_t rows_of_head(const int64_t* dims) { return dims[2]; }

int reference_of_rows(const int64_t* dims, const void* const* inputs, int64_t num_rows, const int64_t* rows, double* const* outputs) {
  attend_all(Shape(dims), inputs, std::vector<int64_t>(rows, rows + num_rows), outputs[0]);
  return 0;
}

// The three queries of nonfinite_rows: to draw one of them by chance is rare.
int64_t notable_row(const int64_t* dims, int32_t input_class, int64_t number) {
  const Shape shape(dims);
  if (input_class != kNonfiniteRows || number > 2) return -1;
  return (shape.all_heads() - 1) * shape.length + (number + 1) * (shape.length / 4);
}

// ---- Description --------------------------------------------------------------------

const char* const kDims[] = {"B", "H", "S", "D"};
const gate_tensor kInputs[] = {
    {"q", GATE_F16, 2, elements}, {"k", GATE_F16, 2, elements}, {"v", GATE_F16, 2, elements}};
const gate_tensor kOutputs[] = {{"o", GATE_F16, 2, elements}};

const gate_op kOp = {
    1, "attention", 4, kDims, 3, kInputs, 1, kOutputs, kClasses, kClassNames, fill, reference, nullptr,
};
const gate_rows kRows = {count_rows, rows_of_head, reference_of_rows, notable_row};

}  // namespace

extern "C" const gate_op* gate_op_v1(void) { return &kOp; }
extern "C" const gate_rows* gate_rows_v1(void) { return &kRows; }
