// rows.h: which rows of a result are compared, where the whole takes too long.
#pragma once

#include <cstdint>
#include <vector>

// draw_rows gives `wanted` rows of `all`, ascending and each once, which follow from
// the seed. Blocks of in_block rows get the same number of them, or one more. Three or
// more of a block hold one of its first and one of its last 64 rows; the others lie
// one in each of as many equal parts. Every row can be drawn.
std::vector<int64_t> draw_rows(int64_t wanted, int64_t all, int64_t in_block, uint64_t seed);
