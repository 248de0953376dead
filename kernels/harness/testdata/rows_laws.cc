// Laws that the choice of rows obeys. Each prints one line; the program ends with 1
// when one is broken, and with the count.

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include "../rows.h"

namespace {

int laws = 0, broken = 0;

void law(const char* name, bool holds) {
  ++laws;
  broken += !holds;
  std::printf("%s %s\n", holds ? "ok  " : "FAIL", name);
}

struct Shape {
  int64_t wanted, all, in_block;
};
constexpr Shape kShapes[] = {{2048, 262144, 4096}, {256, 4096, 512}, {1, 64, 64}, {2, 64, 64}, {3, 64, 64}, {5, 512, 64},
                             {100, 512, 64}, {511, 512, 512}, {512, 512, 64}, {7, 7, 1}, {3, 9, 1}, {1000, 1024, 128}};

std::map<int64_t, int64_t> by_block(const Shape& s, const std::vector<int64_t>& rows) {
  std::map<int64_t, int64_t> counts;
  for (int64_t block = 0; block < s.all / s.in_block; ++block) counts[block] = 0;
  for (int64_t row : rows) ++counts[row / s.in_block];
  return counts;
}

// Three rows or more of a block hold one of each edge.
bool holds_edges(const Shape& s, const std::vector<int64_t>& rows) {
  const int64_t edge = std::min<int64_t>(64, s.in_block);
  for (const auto& [block, count] : by_block(s, rows)) {
    const int64_t begin = block * s.in_block, end = begin + s.in_block;
    const auto some = [&](int64_t from, int64_t to) { return std::any_of(rows.begin(), rows.end(), [&](int64_t row) { return row >= from && row < to; }); };
    if (count > 2 && (!some(begin, begin + edge) || !some(end - edge, end))) return false;
  }
  return true;
}

// No two rows that follow each other lie further apart than two parts of a block.
bool spread(const Shape& s, const std::vector<int64_t>& rows) {
  for (size_t i = 1; i < rows.size(); ++i) {
    const int64_t count = s.wanted / (s.all / s.in_block), part = s.in_block / std::max<int64_t>(1, count - 2) + 1;
    if (count > 2 && rows[i] / s.in_block == rows[i - 1] / s.in_block && rows[i] - rows[i - 1] > 2 * part) return false;
  }
  return true;
}

void laws_of_every_shape() {
  bool number = true, ascends = true, inside = true, even = true, edges = true, apart = true, same = true;
  for (const Shape& s : kShapes)
    for (uint64_t seed = 0; seed < 50; ++seed) {
      const std::vector<int64_t> rows = draw_rows(s.wanted, s.all, s.in_block, seed);
      number &= static_cast<int64_t>(rows.size()) == s.wanted;
      ascends &= std::adjacent_find(rows.begin(), rows.end(), [](int64_t a, int64_t b) { return a >= b; }) == rows.end();
      inside &= rows.front() >= 0 && rows.back() < s.all;
      int64_t least = s.all, most = 0;
      for (const auto& [block, count] : by_block(s, rows)) least = std::min(least, count), most = std::max(most, count);
      even &= most - least <= 1;
      edges &= holds_edges(s, rows);
      apart &= spread(s, rows);
      same &= rows == draw_rows(s.wanted, s.all, s.in_block, seed);
    }
  law("as many rows as were asked for", number);
  law("rows ascend, each once", ascends);
  law("rows are those of the result", inside);
  law("blocks get the same number, or one more", even);
  law("three rows of a block hold one of its first and one of its last 64", edges);
  law("no part of a block is left out", apart);
  law("the same seed gives the same rows", same);
}

// A row that is never drawn could be wrong for ever.
void every_row_is_drawn() {
  for (const Shape& s : {Shape{5, 512, 64}, Shape{8, 512, 512}, Shape{1, 64, 64}, Shape{24, 1024, 512}}) {
    std::set<int64_t> drawn;
    for (uint64_t seed = 0; seed < 5000; ++seed)
      for (int64_t row : draw_rows(s.wanted, s.all, s.in_block, seed)) drawn.insert(row);
    law("every row is drawn by some seed", static_cast<int64_t>(drawn.size()) == s.all);
  }
  law("another seed gives other rows", draw_rows(2048, 262144, 4096, 1) != draw_rows(2048, 262144, 4096, 2));
}

}  // namespace

int main() {
  laws_of_every_shape();
  every_row_is_drawn();
  std::printf("%d laws, %d broken\n", laws, broken);
  return broken != 0;
}
