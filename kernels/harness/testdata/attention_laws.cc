// Laws that the inputs and the reference of the op attention obey. Each prints
// one line; the program ends with 1 when one is broken, and with the count.

#include <cstdio>
#include <string>

#include "../../attention/attention.cc"

namespace {

constexpr int64_t kSmall[4] = {2, 3, 64, 64};  // every class fits, 6 heads
int laws = 0, broken = 0;

void law(const char* name, bool holds, const std::string& detail = "") {
  ++laws;
  broken += !holds;
  std::printf("%s %s %s\n", holds ? "ok  " : "FAIL", name, detail.c_str());
}

// A Case is one class with its inputs and its reference.
struct Case {
  Shape shape;
  std::vector<uint16_t> q, k, v;
  std::vector<double> out;

  Case(const int64_t* dims, int input_class, uint64_t seed = 1)
      : shape(dims), q(elements(dims)), k(q.size()), v(q.size()), out(q.size()) {
    void* const buffers[] = {q.data(), k.data(), v.data()};
    const void* const inputs[] = {q.data(), k.data(), v.data()};
    double* const outputs[] = {out.data()};
    if (fill(dims, input_class, seed, buffers) != 0 || reference(dims, inputs, outputs) != 0) law("runs", false);
  }

  size_t at(int64_t head, int64_t row, int64_t column) const {
    return head * shape.head_size() + row * shape.dim + column;
  }
  double score(int64_t head, int64_t row, int64_t key) const {
    double sum = 0;
    for (int64_t d = 0; d < shape.dim; ++d) sum += from_half(q[at(head, row, d)]) * from_half(k[at(head, key, d)]);
    return sum;
  }
  // Calls f(head, row, column) for every element.
  template <class F>
  void each(F f) const {
    for (int64_t head = 0; head < shape.all_heads(); ++head)
      for (int64_t row = 0; row < shape.length; ++row)
        for (int64_t column = 0; column < shape.dim; ++column) f(head, row, column);
  }
  // The largest distance of the output from expected(head, row, column).
  template <class F>
  double distance(F expected) const {
    double worst = 0;
    each([&](int64_t head, int64_t row, int64_t column) {
      const double error = std::fabs(out[at(head, row, column)] - expected(head, row, column));
      worst = error <= worst ? worst : error;
    });
    return worst;
  }
};

void half_laws() {
  bool round_trip = true, nearest = true;
  for (int bits = 0; bits < 0x10000; ++bits) {
    const bool nan = (bits & 0x7C00) == 0x7C00 && (bits & 0x3FF) != 0;
    if (!nan && to_half(from_half(static_cast<uint16_t>(bits))) != bits) round_trip = false;
  }
  law("FP16: every pattern survives a round trip", round_trip);
  // Between two neighbours, up to the largest finite pair: just below the middle
  // goes down, just above goes up, the middle goes to the even one.
  for (int bits = 0; bits + 1 < 0x7C00; ++bits) {
    const double low = from_half(static_cast<uint16_t>(bits)), high = from_half(static_cast<uint16_t>(bits + 1));
    const double middle = (low + high) / 2;
    nearest &= to_half(middle) == (bits % 2 == 0 ? bits : bits + 1);
    nearest &= to_half(std::nextafter(middle, 0)) == bits && to_half(std::nextafter(middle, INFINITY)) == bits + 1;
    nearest &= to_half(-middle) == (to_half(middle) | 0x8000);
  }
  law("FP16: nearest, ties to even", nearest);
  law("FP16: overflow", to_half(65519.99) == 0x7BFF && to_half(65520) == 0x7C00 && to_half(-1e300) == 0xFC00);
}

void shape_laws() {
  const int64_t zero[] = {1, 0, 64, 64}, huge[] = {int64_t{1} << 40, int64_t{1} << 40, 64, 64};
  law("shapes: zero and overflow are refused", elements(zero) < 1 && elements(huge) < 1);
}

void fill_laws() {
  for (int c = 0; c < kClasses; ++c) {
    const Case a(kSmall, c), b(kSmall, c), other(kSmall, c, 2);
    const std::string name = std::string("fill: ") + kClassNames[c];
    law(name.c_str(), a.q == b.q && a.k == b.k && a.v == b.v && a.q != other.q && a.k != other.k);
  }
}

// The same sums in another order and precision, for one head at a time.
void reference_law() {
  const Case c(kSmall, kNormal);
  const double worst = c.distance([&](int64_t head, int64_t row, int64_t column) {
    long double sum = 0, weighted = 0;
    for (int64_t key = c.shape.length - 1; key >= 0; --key) {
      const long double weight = std::exp(static_cast<long double>(c.score(head, row, key)) / 8);
      sum += weight;
      weighted += weight * from_half(c.v[c.at(head, key, column)]);
    }
    return static_cast<double>(weighted / sum);
  });
  law("reference: equals a plain sum", worst < 1e-12, std::to_string(worst));
}

// Some rows are what they are in the whole result, in their order.
void rows_laws() {
  bool same = true, special = true;
  for (int c = 0; c < kClasses; ++c) {
    const Case whole(kSmall, c);
    const void* const inputs[] = {whole.q.data(), whole.k.data(), whole.v.data()};
    const std::vector<int64_t> rows = {0, 1, 63, 64, 130, 200, 201, 383};
    const size_t dim = static_cast<size_t>(whole.shape.dim);
    std::vector<double> some(rows.size() * dim);
    double* const outputs[] = {some.data()};
    same &= gate_rows_v1()->reference(kSmall, inputs, static_cast<int64_t>(rows.size()), rows.data(), outputs) == 0;
    for (size_t i = 0; i < rows.size(); ++i)
      same &= std::memcmp(&some[i * dim], &whole.out[static_cast<size_t>(rows[i]) * dim], dim * sizeof(double)) == 0;
    for (int64_t n = 0, row; (row = gate_rows_v1()->notable(kSmall, c, n)) >= 0; ++n)
      special &= c == kNonfiniteRows && n < 3 && !std::isfinite(whole.out[static_cast<size_t>(row) * dim]);
  }
  law("rows: some are what they are in the whole", same);
  law("rows: those of nonfinite_rows are notable, and no others", special && gate_rows_v1()->notable(kSmall, kNonfiniteRows, 2) > 0);
  law("rows: a head is a block", gate_rows_v1()->count(kSmall) == 6 * 64 && gate_rows_v1()->in_block(kSmall) == 64);
}

void value_laws() {
  const Case unit(kSmall, kUnitValues);
  law("unit_values: the output is 1", unit.distance([](int64_t, int64_t, int64_t) { return 1.0; }) < 1e-12);

  const Case equal(kSmall, kEqualKeys);
  law("equal_keys: the output is the mean value", equal.distance([&](int64_t head, int64_t, int64_t column) {
        double sum = 0;
        for (int64_t key = 0; key < equal.shape.length; ++key) sum += from_half(equal.v[equal.at(head, key, column)]);
        return sum / equal.shape.length;
      }) < 1e-12);

  const Case heads(kSmall, kDistinctHeads);
  law("distinct_heads: the output is near the head's number",
      heads.distance([](int64_t head, int64_t, int64_t) { return head + 1.0; }) < 0.4);
}

void dominant_laws() {
  const int64_t length = kSmall[2];
  const int64_t positions[] = {0, length / 4, length / 2, length * 3 / 4, length - 1};
  for (int i = 0; i < 5; ++i) {
    const Case c(kSmall, kDominantFirst + i);
    const double worst = c.distance([&](int64_t head, int64_t, int64_t column) {
      return from_half(c.v[c.at(head, positions[i], column)]);
    });
    law((std::string(kClassNames[kDominantFirst + i]) + ": the output is that key's value").c_str(), worst < 1e-2);
  }
}

void permuted_law() {
  const int64_t odd[] = {1, 3, 192, 64};  // not a power of two, and a head without a partner
  for (const int64_t* dims : {kSmall, odd}) {
    const Case normal(dims, kNormal), permuted(dims, kPermutedKeys);
    const auto of_pair = [&](const std::vector<double>& all, int64_t h, int64_t r, int64_t c) { return all[normal.at(h / 2 * 2, r, c)]; };
    const double to_partner = permuted.distance([&](int64_t h, int64_t r, int64_t c) { return of_pair(permuted.out, h, r, c); });
    const double to_normal = permuted.distance([&](int64_t h, int64_t r, int64_t c) { return of_pair(normal.out, h, r, c); });
    law("permuted_keys: both orders have the result of the normal class", to_partner < 1e-12 && to_normal < 1e-12);
    bool as_normal = true, other_keys = true;
    for (int64_t head = 0; head < normal.shape.all_heads(); ++head) {
      const size_t at = normal.at(head, 0, 0), pair = normal.at(head / 2 * 2, 0, 0), size = normal.shape.head_size();
      const auto same = [&](const std::vector<uint16_t>& a, size_t i, const std::vector<uint16_t>& b, size_t j) { return std::equal(&a[i], &a[i] + size, &b[j]); };
      const bool is_permuted = head % 2 == 1 || head == normal.shape.all_heads() - 1;
      as_normal &= same(permuted.q, at, normal.q, pair);
      other_keys &= is_permuted != same(permuted.k, at, normal.k, pair) && is_permuted != same(permuted.v, at, normal.v, pair);
    }
    law("permuted_keys: the queries of the pair, and other keys in every second head", as_normal && other_keys);
  }
}

void overflow_law() {
  const int64_t longest[] = {1, 1, 1024, 64};
  const Case c(longest, kOverflowF16);
  double largest = 0;
  bool exact = true;
  for (int64_t row = 0; row < c.shape.length; ++row)
    for (int64_t key = 0; key < c.shape.length; ++key) {
      double sum = 0;
      for (int64_t d = 0; d < c.shape.dim; ++d)
        sum += std::fabs(from_half(c.q[c.at(0, row, d)]) * from_half(c.k[c.at(0, key, d)]));
      exact &= std::fmod(c.score(0, row, key), 256) == 0 && sum < 256 * 0x1p24;
      largest = std::max(largest, std::fabs(c.score(0, row, key)));
    }
  law("overflow_f16: beyond FP16, exact in FP32", largest > 65504 && exact, std::to_string(largest));
}

void nonfinite_law() {
  const Case c(kSmall, kNonfiniteRows);
  const int64_t last = c.shape.all_heads() - 1, quarter = c.shape.length / 4;
  bool holds = true;
  c.each([&](int64_t head, int64_t row, int64_t column) {
    const bool hit = head == last && row > 0 && row % quarter == 0;
    holds &= std::isfinite(c.out[c.at(head, row, column)]) != hit;
  });
  law("nonfinite_rows: three rows, and no other", holds);
}

void nonfinite_column_laws() {
  const Case v(kSmall, kNonfiniteValues);
  const int64_t last = v.shape.all_heads() - 1, dim = v.shape.dim;
  bool holds = true;
  v.each([&](int64_t head, int64_t row, int64_t column) {
    const double x = v.out[v.at(head, row, column)];
    if (head != last || (column != 0 && column != dim / 2 && column != dim - 1)) holds &= std::isfinite(x);
    else holds &= column == 0 ? std::isnan(x) : std::isinf(x) && (x > 0) == (column == dim / 2);
  });
  law("nonfinite_values: three columns, each of its kind, and no other", holds);

  const Case k(kSmall, kNonfiniteKeys);
  int64_t finite_rows = 0;
  holds = true;
  k.each([&](int64_t head, int64_t row, int64_t column) {
    const double x = k.out[k.at(head, row, column)];
    const bool seen = head == last && from_half(k.q[k.at(head, row, dim / 2)]) > 0;
    holds &= std::isnan(x) == (head == 0 || seen) && !std::isinf(x);
    finite_rows += head == last && column == 0 && !seen;
  });
  law("nonfinite_keys: NaN where one is seen as NaN or +∞, finite where as −∞", holds && finite_rows > 0 && finite_rows < k.shape.length);
}

void small_value_laws() {
  const Case o(kSmall, kOffsetValues), s(kSmall, kSubnormalValues);
  double sum = 0, largest = 0;
  for (int64_t row = 0; row < o.shape.length; ++row) sum += from_half(o.v[o.at(0, row, 0)]);
  law("offset_values: the mean of the values", std::fabs(o.out[0] - sum / static_cast<double>(o.shape.length)) < 1e-9 && o.out[0] > 150);
  for (double x : s.out) largest = std::fmax(largest, std::fabs(x));
  law("subnormal_values: most results are below the normal numbers of FP16 or near", largest < 64 * 0x1p-14 && largest > 0);
}

}  // namespace

int main() {
  half_laws();
  shape_laws();
  fill_laws();
  reference_law();
  rows_laws();
  value_laws();
  dominant_laws();
  permuted_law();
  overflow_law();
  nonfinite_law();
  nonfinite_column_laws();
  small_value_laws();
  std::printf("%d laws, %d broken\n", laws, broken);
  return broken != 0;
}
