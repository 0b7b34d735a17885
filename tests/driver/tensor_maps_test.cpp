// Tensor maps in plans: written and read again, and refused by the checker where they reach outside
// of their input or the hardware would not take them.
#include <doctest/doctest.h>

#include "driver/compile/compile.h"
#include "ir/text.h"
#include "plan/checker.h"
#include "plan/kernel_text.h"
#include "plan/plan_file.h"
#include "support/result.h"

namespace sinter::tensor_maps_test {
namespace {

constexpr const char* kModule = R"(module @products {
  symbol N in [0, 600]
  weight %w : f16[40, 512] = file {tensor = "w"}
  entry @e(%x: f16[N, 520]) -> (%y) {
    %part = slice %x {axis = 1, begin = 8, size = 512} : f16[N, 512]
    %y = linear %part, %w {order = tiled_linear} : f16[N, 40]
  }
})";

Program program() {
  Module frozen = value(freeze(value(parse_module(kModule, "test")), {}));
  return *value(compile(std::move(frozen), {})).program;
}

Kernel& kernel_of(Program& program) {
  for (Kernel& kernel : program.kernels)
    if (!kernel.tensor_maps.empty()) return kernel;
  FAIL("no kernel has a tensor map");
  return program.kernels[0];
}

/// The checker's error for the plan whose first tensor map is changed; empty: none.
template <typename Change>
std::string refusal(Change change) {
  Program changed = program();
  change(kernel_of(changed).tensor_maps[0]);
  const Status status = check(changed);
  return status ? "" : status.error().message();
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

}  // namespace

TEST_CASE("a kernel's tensor maps describe its operands, a slice by its first element") {
  Program made = program();
  const Kernel& kernel = kernel_of(made);
  REQUIRE(kernel.tensor_maps.size() == 2);
  const TensorMap& x = kernel.tensor_maps[0];
  CHECK(x.offset.is(8));
  CHECK(x.strides[0].is(520));
  CHECK(x.dims[0].is(512));
  CHECK(x.box == std::vector<int64_t>{64, 128});
  CHECK(check(made).has_value());
  CHECK(check_text(kernel, made.symbols, kernel.source).has_value());
}

TEST_CASE("tensor maps are written to a plan and read again") {
  Program made = program();
  const std::string text = write_plan(made);
  CHECK(contains(text, "\"tensor_maps\""));
  const Program again = value(read_plan(text));
  CHECK(write_plan(again) == text);
}

TEST_CASE("the text of a kernel states its tensor maps") {
  Program made = program();
  Kernel changed = kernel_of(made);
  changed.tensor_maps[0].box[1] = 64;
  CHECK_FALSE(check_text(changed, made.symbols, changed.source).has_value());
  changed = kernel_of(made);
  changed.tensor_maps.pop_back();
  CHECK_FALSE(check_text(changed, made.symbols, changed.source).has_value());
}

TEST_CASE("the checker refuses a tensor map that reaches outside of its input") {
  CHECK(contains(refusal([](TensorMap& map) { map.offset = 16; }), "reaches element"));
  CHECK(contains(refusal([](TensorMap& map) { map.dims[0] = 520; }), "reaches element"));
  CHECK(contains(refusal([](TensorMap& map) { map.dims[1] += SymExpr(1); }), "reaches element"));
  CHECK(contains(refusal([](TensorMap& map) { map.strides[0] = 528; }), "reaches element"));
  CHECK(contains(refusal([](TensorMap& map) { map.input = 7; }), "input 7 of"));
}

TEST_CASE("the checker refuses a tensor map that the hardware does not take") {
  CHECK(contains(refusal([](TensorMap& map) { map.offset = 4; }), "no multiple of 16 bytes"));
  CHECK(contains(refusal([](TensorMap& map) { map.strides[0] = 516; }), "no multiple of 16 bytes"));
  CHECK(contains(refusal([](TensorMap& map) { map.box[1] = 257; }), "must be 1 to 256"));
  CHECK(contains(refusal([](TensorMap& map) { map.box[0] = 0; }), "must be 1 to 256"));
  CHECK(contains(refusal([](TensorMap& map) { map.box[0] = 128; }), "rows of a box of 256 bytes"));
  CHECK(contains(refusal([](TensorMap& map) { map.swizzle = 48; }), "a swizzle of 48 bytes"));
  CHECK(contains(refusal([](TensorMap& map) { map.strides.clear(); }), "0 strides"));
  CHECK(contains(refusal([](TensorMap& map) { map.dims.clear(); }), "0 dims"));
  CHECK(contains(refusal([](TensorMap& map) { map.offset = -8; }), "negative"));
}

}  // namespace sinter::tensor_maps_test
