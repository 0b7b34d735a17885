// The table of element types: what holds of every row, and counting bytes.
#include "ir/dtype.h"

#include <doctest/doctest.h>

#include <limits>
#include <set>

namespace sinter::dtype_test {

TEST_CASE("a row of the element types says of itself what the functions say") {
  for (const DTypeInfo& info : kDTypes) {
    CAPTURE(info.name);
    CHECK(&dtype_info(info.dtype) == &info);
    CHECK(to_string(info.dtype) == info.name);
    CHECK(parse_dtype(info.name) == info.dtype);
    CHECK(is_float(info.dtype) == (info.type_class == DTypeClass::real));
    CHECK_FALSE(info.memory.empty());
    CHECK_FALSE(info.registers.empty());
    // The library multiplies numbers that have a fraction.
    CHECK(info.library.has_value() == is_float(info.dtype));
  }
  CHECK_FALSE(parse_dtype("f63"));
  CHECK_FALSE(parse_dtype(""));
}

TEST_CASE("digits and exponents of floats") {
  CHECK(dtype_info(DType::f32).digits == std::numeric_limits<float>::digits);
  CHECK(dtype_info(DType::f32).least_exponent == std::numeric_limits<float>::min_exponent - 1);
  for (const DTypeInfo& info : kDTypes) {
    CAPTURE(info.name);
    CHECK((info.digits > 0) == is_float(info.dtype));
    CHECK((info.least_exponent < 0) == is_float(info.dtype));
    CHECK(info.digits < info.bits);
  }
}

TEST_CASE("a constant of i32 is the nearest number that i32 has") {
  CHECK(nearest_i32(-3) == -3);
  CHECK(nearest_i32(2.5) == 2);
  CHECK(nearest_i32(3.5) == 4);
  CHECK(nearest_i32(1e30) == INT32_MAX);
  CHECK(nearest_i32(-std::numeric_limits<double>::infinity()) == INT32_MIN);
  CHECK(nearest_i32(std::numeric_limits<double>::quiet_NaN()) == 0);
}

TEST_CASE("a constant of i64 is the nearest number that i64 has") {
  CHECK(nearest_i64(-3) == -3);
  CHECK(nearest_i64(2.5) == 2);
  CHECK(nearest_i64(0x1p40) == int64_t{1} << 40);
  CHECK(nearest_i64(1e30) == INT64_MAX);
  CHECK(nearest_i64(-1e30) == INT64_MIN);
  CHECK(nearest_i64(std::numeric_limits<double>::quiet_NaN()) == 0);
}

TEST_CASE("no two element types share a name") {
  std::set<std::string_view> names, memory, safetensors, numpy;
  std::set<int> library;
  for (const DTypeInfo& info : kDTypes) {
    CAPTURE(info.name);
    CHECK(names.insert(info.name).second);
    CHECK(memory.insert(info.memory).second);
    CHECK(safetensors.insert(info.safetensors).second);
    CHECK((!info.numpy || numpy.insert(*info.numpy).second));
    CHECK((!info.library || library.insert(*info.library).second));
  }
}

TEST_CASE("NumPy's names of element types end with their bytes") {
  for (const DTypeInfo& info : kDTypes) {
    if (!info.numpy) continue;
    CAPTURE(info.name);
    CHECK(info.numpy->size() == 3);
    CHECK(info.numpy->back() - '0' == whole_bytes(info.dtype));
  }
}

TEST_CASE("bytes of elements") {
  for (const DTypeInfo& info : kDTypes) {
    CAPTURE(info.name);
    const int64_t bytes = whole_bytes(info.dtype);
    CHECK(bytes * 8 == info.bits);
    CHECK(storage_bytes(info.dtype, 0) == 0);
    CHECK(storage_bytes(info.dtype, 17) == 17 * bytes);
    CHECK(average_bytes(info.dtype) == static_cast<double>(bytes));
    CHECK(storage_bytes(info.dtype, max_elements(info.dtype)) == kMaxValueBytes);
  }
}

TEST_CASE("elements that share a byte end with it, or have no number of bytes") {
  CHECK(packed_bytes(4, 0) == 0);
  CHECK(packed_bytes(4, 6) == 3);
  CHECK_FALSE(packed_bytes(4, 7));
  CHECK(packed_bytes(6, 4) == 3);
  CHECK_FALSE(packed_bytes(6, 2));
  CHECK(packed_bytes(1, 16) == 2);
  CHECK_FALSE(packed_bytes(1, 12));
  CHECK(packed_bytes(6, int64_t{1} << 60) == int64_t{6} << 57);
  CHECK(packed_bytes(16, 3) == 6);
}

}  // namespace sinter::dtype_test
