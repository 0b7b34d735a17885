// The classes of lengths, and which lengths of a step are in one.
#include "runtime/cuda/length_class.h"

#include <doctest/doctest.h>

namespace sinter::length_class_test {
namespace {

TEST_CASE("up to 64 each length is alone, beyond it the classes are a quarter of an octave") {
  for (int64_t length = 0; length <= 64; ++length)
    CHECK(length_class(length) == LengthClass{length, length});
  CHECK(length_class(65) == LengthClass{65, 80});
  CHECK(length_class(80) == LengthClass{65, 80});
  CHECK(length_class(81) == LengthClass{81, 96});
  CHECK(length_class(128) == LengthClass{113, 128});
  CHECK(length_class(129) == LengthClass{129, 160});
  CHECK(length_class(2000) == LengthClass{1793, 2048});
  CHECK(length_class(2049) == LengthClass{2049, 2560});
  CHECK(length_class(int64_t{1} << 40).last == int64_t{1} << 40);
  CHECK(length_class(INT64_MAX) == LengthClass{INT64_MAX, INT64_MAX});
}

TEST_CASE("classes follow one another, and hold what is in them") {
  int64_t classes = 0;
  for (int64_t first = 65; first <= 1 << 17; ++classes) {
    const LengthClass at = length_class(first);
    REQUIRE(at.first == first);
    REQUIRE(at.last >= first);
    CHECK(length_class(at.last) == at);
    CHECK(length_class((at.first + at.last) / 2) == at);
    CHECK(at.last % 16 == 0);
    CHECK(at.last * 4 < at.first * 5);
    first = at.last + 1;
  }
  CHECK(classes == 44);
}

}  // namespace
}  // namespace sinter::length_class_test
