#include "rows.h"

#include <algorithm>
#include <random>
#include <set>

namespace {

constexpr int64_t kEdge = 64;  // rows at the beginning and at the end of a block: a tile

// Draws rows of one block.
class Block {
 public:
  Block(int64_t rows, std::mt19937_64& random) : rows_(rows), random_(random) {}

  void draw(int64_t wanted) {
    const int64_t edge = std::min(kEdge, rows_);
    int64_t parts = wanted;
    if (wanted > 2) {
      take(0, edge);
      take(rows_ - edge, rows_);
      parts -= 2;
    }
    for (int64_t part = 0; part < parts; ++part) take(part * rows_ / parts, (part + 1) * rows_ / parts);
  }
  const std::set<int64_t>& taken() const { return taken_; }

 private:
  // One row of a part; of the whole block where all of the part are taken.
  void take(int64_t from, int64_t to) {
    if (!take_free(from, to)) take_free(0, rows_);
  }
  bool take_free(int64_t from, int64_t to) {
    const int64_t length = to - from, start = below(length);
    for (int64_t i = 0; i < length; ++i)
      if (taken_.insert(from + (start + i) % length).second) return true;
    return false;
  }
  int64_t below(int64_t limit) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(limit)); }

  const int64_t rows_;
  std::mt19937_64& random_;
  std::set<int64_t> taken_;
};

}  // namespace

std::vector<int64_t> draw_rows(int64_t wanted, int64_t all, int64_t in_block, uint64_t seed) {
  std::mt19937_64 random(seed);
  const int64_t blocks = all / in_block;
  std::vector<int64_t> share(static_cast<size_t>(blocks), wanted / blocks);
  for (int64_t i = 0; i < wanted % blocks; ++i) ++share[static_cast<size_t>(i)];
  std::shuffle(share.begin(), share.end(), random);
  std::vector<int64_t> rows;
  for (int64_t block = 0; block < blocks; ++block) {
    Block one(in_block, random);
    one.draw(share[static_cast<size_t>(block)]);
    for (int64_t row : one.taken()) rows.push_back(block * in_block + row);
  }
  return rows;
}
