// Sorting many texts, such as the keys of a vocabulary. Sorting, not hashing: a file cannot choose
// texts that make it slow.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

namespace sinter {

/// The numbers below `count` in the order of text(number), by bytes without sign; equal texts in
/// the order of their numbers. The texts stay where they are.
template <typename Text>
std::vector<uint32_t> text_order(size_t count, const Text& text) {
  // Most texts differ in their first bytes, which are compared without a look at the text.
  struct Item {
    uint64_t start;  // the first 8 bytes, big-endian, zeros after the text's end
    uint32_t number;
  };
  std::vector<Item> items(count);
  for (uint32_t i = 0; i < count; ++i) {
    const std::string_view whole = text(i);
    uint64_t start = 0;
    for (size_t k = 0; k < sizeof start; ++k)
      start = start << 8 | (k < whole.size() ? static_cast<unsigned char>(whole[k]) : 0);
    items[i] = {start, i};
  }
  std::sort(items.begin(), items.end(), [&](const Item& a, const Item& b) {
    if (a.start != b.start) return a.start < b.start;
    const int order = std::string_view(text(a.number)).compare(text(b.number));
    return order != 0 ? order < 0 : a.number < b.number;
  });
  std::vector<uint32_t> numbers(count);
  for (size_t i = 0; i < count; ++i) numbers[i] = items[i].number;
  return numbers;
}

}  // namespace sinter
