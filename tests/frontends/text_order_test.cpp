#include "frontends/files/text_order.h"

#include <doctest/doctest.h>

#include <numeric>
#include <random>
#include <string>

namespace sinter::text_order_test {

TEST_CASE("texts are sorted by their bytes, equal ones by their numbers, as a stable sort does") {
  std::mt19937 random(1);
  std::vector<std::string> texts = {"", std::string(1, '\0'), std::string(8, '\0'), "12345678"};
  for (int i = 0; i < 5000; ++i) {
    std::string& text = texts.emplace_back();
    const size_t length = random() % 12;
    for (size_t k = 0; k < length; ++k) text += "\0a\x7f\x80\xff"[random() % 5];
  }
  std::vector<uint32_t> expected(texts.size());
  std::iota(expected.begin(), expected.end(), 0u);
  std::stable_sort(expected.begin(), expected.end(),
                   [&](uint32_t a, uint32_t b) { return texts[a] < texts[b]; });
  CHECK(text_order(texts.size(), [&](uint32_t i) -> std::string_view { return texts[i]; }) ==
        expected);
  CHECK(text_order(0, [](uint32_t) { return std::string_view(); }).empty());
}

}  // namespace sinter::text_order_test
