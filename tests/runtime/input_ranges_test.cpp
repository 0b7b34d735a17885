// Ids, slots and rows that kernels use as addresses, in inputs.
#include "runtime/input_ranges.h"

#include <doctest/doctest.h>

#include "driver/compile/compile.h"
#include "ir/text.h"

namespace sinter::input_ranges_test {
namespace {

constexpr std::string_view kModule = R"(
module @addresses {
  symbol N in [1, 16]
  symbol R in [8, 64] step 8
  weight %table : f32[10, 8] = constant {value = 0x1p+0}
  state %keys : f32[R, 8]
  state %values : f32[R, 8]
  entry @main(%ids: i32[N], %slot: i32[N], %first: i32[N], %last: i32[N], %free: i32[N]) -> (%attended, %sum, %again) {
    %x = embedding %table, %ids : f32[N, 8]
    %k = kv_append %keys, %x, %slot : f32[R, 8]
    %v = kv_append %values, %x, %slot : f32[R, 8]
    %attended = attention %x, %k, %v, %first, %last {order = decode_attention, heads = 1, kv_heads = 1, scale = 0x1p-2, splits = 2} : f32[N, 8]
    %sum = add %free, %ids : i32[N]
    %zero = sub %free, %free : i32[N]
    %again = embedding %table, %zero : f32[N, 8]
  }
}
)";
constexpr int64_t kRows = 24;

/// The check's message about the inputs of three tokens, one number of which may be changed; a
/// fused and an unfused plan must agree.
std::string checked(size_t input = 0, int64_t at = 0, std::optional<int32_t> changed = {}) {
  std::string said;
  for (bool fuse : {true, false}) {
    auto module = parse_module(kModule, "addresses.sir");
    REQUIRE_MESSAGE(module.has_value(), (module ? "" : module.error().message()));
    CompileOptions options;
    options.fusion.enabled = fuse;
    const auto compiled = compile(*freeze(std::move(*module), {}), options);
    REQUIRE_MESSAGE(compiled.has_value(), (compiled ? "" : compiled.error().message()));
    const Program& program = *compiled->program;
    std::vector<HostTensor> inputs;
    for (const auto& values :
         {std::vector<int32_t>{0, 9, 5}, {0, 23, 1}, {0, 0, 0}, {23, 23, 1}, {-5, 1000000, 0}}) {
      inputs.push_back(*make_tensor(DType::i32, {3}));
      std::copy(values.begin(), values.end(), inputs.back().data<int32_t>());
    }
    if (changed) inputs[input].data<int32_t>()[at] = *changed;
    const Status status =
        check_input_ranges(program, program.entries[0], {3, kRows}, addresses_of(inputs));
    const std::string message = status ? "fine" : status.error().message();
    CHECK((said.empty() || said == message));
    said = message;
  }
  return said;
}

TEST_CASE("inputs inside their tables are fine, and so are numbers that address nothing") {
  CHECK(checked() == "fine");
  CHECK(checked(4, 0, INT32_MIN) == "fine");
  CHECK(checked(0, 2, 0) == "fine");
}

TEST_CASE("ids outside the table, slots and rows outside the cache are errors") {
  struct Outside {
    size_t input;
    const char* name;
    int32_t limit;
  };
  for (const Outside& outside :
       {Outside{0, "ids", 10}, {1, "slot", kRows}, {2, "first", kRows}, {3, "last", kRows}})
    for (int64_t at : {0, 2})
      for (int32_t id : {-1, outside.limit, INT32_MAX, INT32_MIN}) {
        const std::string said = checked(outside.input, at, id);
        CAPTURE(said);
        CHECK(said.find(fmt::format("%{}[{}] is {}, outside the 0 .. {} that it points into",
                                    outside.name, at, id, outside.limit - 1)) != std::string::npos);
      }
}

TEST_CASE("a byte of a truth value that is neither 0 nor 1 is an error with its element") {
  auto module = parse_module(R"(
module @masks {
  symbol N in [1, 16]
  entry @main(%mask: i1[N, 2]) -> (%y) {
    %y = logical_not %mask : i1[N, 2]
  }
})",
                             "masks.sir");
  REQUIRE(module.has_value());
  const auto compiled = compile(*freeze(std::move(*module), {}), {});
  REQUIRE(compiled.has_value());
  std::vector<HostTensor> inputs;
  inputs.push_back(*make_tensor(DType::i1, {3, 2}));
  const auto said = [&](uint8_t byte) {
    inputs[0].data<uint8_t>()[4] = byte;
    const Program& program = *compiled->program;
    const Status status =
        check_input_ranges(program, program.entries[0], {3}, addresses_of(inputs));
    return status ? "fine" : status.error().message();
  };
  CHECK(said(0) == "fine");
  CHECK(said(1) == "fine");
  for (const uint8_t byte : {2, 128, 255})
    CHECK(said(byte) ==
          fmt::format("entry main: %mask[4] is {}, a truth value (i1) is 0 or 1; write 1 for true",
                      byte));
}

}  // namespace
}  // namespace sinter::input_ranges_test
