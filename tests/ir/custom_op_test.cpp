// Callers' ops: the language of signatures, records that are refused, modules that use them.
#include "ir/custom_op.h"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "ir/custom_signature.h"
#include "ir/infer.h"
#include "ir/text.h"
#include "support/custom_ops.h"
#include "support/result.h"

namespace sinter::custom_op_test {
namespace {

const std::vector<Symbol>& symbols() {
  static const std::vector<Symbol> both = {{.name = "N", .low = 0, .high = 64},
                                           {.name = "M", .low = 1, .high = 8}};
  return both;
}
const Dim kN = SymbolId{0}, kM = SymbolId{1};

std::string result_of(std::string_view signature, std::vector<TensorType> operands) {
  const CustomSignature parsed = value(CustomSignature::parse(signature));
  const auto type = parsed.result_of(operands, symbols());
  return type ? to_string(*type, symbols()) : type.error().message();
}

std::string parse_error(std::string_view signature) {
  const auto parsed = CustomSignature::parse(signature);
  REQUIRE_FALSE(parsed.has_value());
  CHECK(parsed.error().hint == "write it like \"x: float[..., D], w: x[D] -> x[..., D]\"");
  return parsed.error().where + ": " + parsed.error().what;
}

TEST_CASE("a signature gives the result's type of any operands that fit") {
  const char* norm = "x: float[..., D], w: x[D] -> x[..., D]";
  CHECK(result_of(norm, {{DType::f16, {kN, 512}}, {DType::f16, {512}}}) == "f16[N, 512]");
  CHECK(result_of(norm, {{DType::f32, {2, kN, kM}}, {DType::f32, {kM}}}) == "f32[2, N, M]");
  CHECK(result_of(norm, {{DType::bf16, {7}}, {DType::bf16, {7}}}) == "bf16[7]");
  CHECK(result_of(" a : i32 [N, 3 ] ,b:i1 [ ]->f32[N , 5] ",
                  {{DType::i32, {kN, 3}}, {DType::i1, {}}}) == "f32[N, 5]");
}

TEST_CASE("a result's dims may be multiples and parts of constant dims") {
  CHECK(result_of("x: f16[N, D] -> x[N, D/2]", {{DType::f16, {kN, 10}}}) == "f16[N, 5]");
  CHECK(result_of("x: f16[N, D] -> f32[2*D, N, 3]", {{DType::f16, {kN, 10}}}) == "f32[20, N, 3]");
  CHECK(result_of("x: i32[A, 4] -> i1[3*A/2]", {{DType::i32, {4, 4}}}) == "i1[6]");
  CHECK(result_of("x: f16[D] -> x[D/2]", {{DType::f16, {7}}}) ==
        "the result [D/2] with D = 7 does not divide");
  CHECK(result_of("x: f16[D] -> x[2*D]", {{DType::f16, {kN}}}) ==
        "the result [2*D] with D = N is computed of a symbol; only constant dims can be multiplied "
        "or divided");
}

TEST_CASE("operands that do not fit are named, with both values") {
  const char* norm = "x: float[..., D], w: x[D] -> x[..., D]";
  CHECK(result_of(norm, {{DType::f16, {kN, 512}}, {DType::f16, {256}}}) ==
        "operand 1 (w) has dims [256], the signature wants [D] with D = 512");
  CHECK(result_of(norm, {{DType::f16, {kN, 512}}, {DType::f32, {512}}}) ==
        "operand 1 (w) has elements of f32, the signature wants f16, as operand 0 (x) has");
  CHECK(result_of(norm, {{DType::i32, {512}}, {DType::i32, {512}}}) ==
        "operand 0 (x) has elements of i32, the signature wants a float type");
  CHECK(result_of(norm, {{DType::f16, {kN, 512}}, {DType::f16, {1, 512}}}) ==
        "operand 1 (w) has dims [1, 512], the signature wants [D]");
  CHECK(result_of(norm, {{DType::f16, {}}, {DType::f16, {5}}}) ==
        "operand 0 (x) has dims [], the signature wants [..., D]");
  CHECK(result_of(norm, {{DType::f16, {5}}}) == "1 operands, the signature has 2");
  CHECK(result_of("x: i32[..., 4], y: i1[..., 2] -> i1[...]",
                  {{DType::i32, {kN, 4}}, {DType::i1, {kM, 2}}}) ==
        "operand 1 (y) has dims [M, 2], the signature wants [..., 2] with ... = [N]");
  CHECK(result_of("x: i32[4] -> x[]", {{DType::i32, {5}}}) ==
        "operand 0 (x) has dims [5], the signature wants [4]");
  CHECK(result_of("x: i32[4] -> x[]", {{DType::i1, {4}}}) ==
        "operand 0 (x) has elements of i1, the signature wants i32");
}

TEST_CASE("a signature that is none is refused with its place") {
  CHECK(parse_error("") == "signature, character 1: expected an operand's name, got the end");
  CHECK(parse_error("x f16[D] -> x[D]") ==
        "signature, character 3: expected ':', got 'f16[D] -> x[D]'");
  CHECK(parse_error("x: f64[D] -> x[D]") ==
        "signature, character 4: expected f32, f16, bf16, i32, i64, i1, float or an earlier "
        "operand's "
        "name, got 'f64[D] -> x[D]'");
  CHECK(parse_error("x: f16[D]") == "signature, character 10: expected ',' or '->', got the end");
  CHECK(parse_error("x: f16[D] -> float[D]") ==
        "signature, character 14: expected f32, f16, bf16, i32, i64, i1 or an operand's name, got "
        "'float[D]'");
  CHECK(parse_error("x: f16[D] -> x[E]") == "signature, character 16: no operand has the dim E");
  CHECK(parse_error("x: f16[D] -> x[..., D]") == "signature, character 15: no operand has '...'");
  CHECK(parse_error("x: f16[D, ...] -> x[D]") ==
        "signature, character 11: '...' stands at the front of the dims alone");
  CHECK(parse_error("x: f16[2*D] -> x[D]") ==
        "signature, character 9: expected ',' or ']', got '*D] -> x[D]'");
  CHECK(parse_error("x: f16[D] -> x[D/0]") ==
        "signature, character 18: expected a number above 0 to divide by");
  CHECK(parse_error("x: f16[D], x: f16[D] -> x[D]") ==
        "signature, character 12: two operands are named x");
  CHECK(parse_error("f16: f16[D] -> f16[D]") ==
        "signature, character 1: operand f16 has the name of a type");
  CHECK(parse_error("x: f16[99999999999999999999] -> x[1]") ==
        "signature, character 8: a number exceeds 2^48");
  CHECK(parse_error("x: f16[D] -> x[D] y") == "signature, character 19: expected the end, got 'y'");
  std::string many = "a0: f16[]";
  for (int i = 1; i <= 8; ++i) many += fmt::format(", a{}: f16[]", i);
  CHECK(parse_error(many + " -> a0[]").ends_with("more than 8 operands"));
}

TEST_CASE("a signature with any character changed is read or refused") {
  const std::string text = "x: float[..., D], w: x[D, 4] -> x[..., 2*D/3]";
  for (size_t at = 0; at < text.size(); ++at)
    for (int c = 0; c < 256; ++c) {
      std::string changed = text;
      changed[at] = static_cast<char>(c);
      const auto parsed = CustomSignature::parse(changed);
      if (!parsed) CHECK(parsed.error().where.starts_with("signature, character "));
    }
}

std::string register_error(CustomOp op) {
  const Status status = register_custom_op(std::move(op));
  REQUIRE_FALSE(status.has_value());
  return status.error().message();
}

TEST_CASE("a bad record is refused with the field and why") {
  const auto with = [](auto change) {
    CustomOp op = test::norm_op("test.bad");
    change(op);
    return register_error(std::move(op));
  };
  const std::string where = "custom op test.bad: ";
  CHECK(with([](CustomOp& op) { op.name = "a b"; }) ==
        "\"a b\" is no name of a custom op; use letters, digits, '_' and '.', at most 64");
  CHECK(with([](CustomOp& op) { op.name = ""; }).starts_with("\"\" is no name"));
  CHECK(with([](CustomOp& op) { op.name = std::string(65, 'a'); }).find("is no name") !=
        std::string::npos);
  CHECK(with([](CustomOp& op) { op.signature = "x"; }) ==
        "custom op test.bad, signature, character 2: expected ':', got the end; write it like \"x: "
        "float[..., D], w: x[D] -> x[..., D]\"");
  CHECK(with([](CustomOp& op) { op.threads = 48; }) ==
        where + "threads is 48, must be 32 to 1024, a multiple of 32");
  CHECK(with([](CustomOp& op) { op.row_axes = 9; }) == where + "row_axes is 9, must be -8 to 8");
  CHECK(with([](CustomOp& op) { op.shared_bytes = 1 << 20; }) ==
        where + "shared_bytes is 1048576, must be 0 to 232448");
  CHECK(with([](CustomOp& op) { op.number_count = 65; }) ==
        where + "number_count is 65, must be 0 to 64");
  CHECK(with([](CustomOp& op) { op.source += '\0'; }).starts_with(where + "source has characters"));
  CHECK(
      with([](CustomOp& op) { op.source += '\xff'; }).starts_with(where + "source has characters"));
  CHECK(with([](CustomOp& op) { op.function = "f("; }) ==
        where + "function is \"f(\", no name of a C++ function");
  CHECK(with([](CustomOp& op) { op.function = "a::"; }).starts_with(where + "function is"));
  CHECK(with([](CustomOp& op) { op.function = "::a"; }).starts_with(where + "function is"));
  CHECK(with([](CustomOp& op) { op.function = "other"; }) ==
        where + "source does not have the function other");
  CHECK(with([](CustomOp& op) {
          op.open_operands = {true, false, true};
        }) == where + "open_operands has 3 elements, the signature 2 operands");
  CHECK(with([](CustomOp& op) { op.tolerance = 0.5; }) ==
        where + "tolerance is 0.5 and the op is exact; leave the tolerance of an exact op at 0");
  CHECK(with([](CustomOp& op) {
          op.exact = false;
          op.tolerance = -1;
        }) == where + "tolerance is -1, must be a number >= 0");
  CHECK(with([](CustomOp& op) { op.evaluate = nullptr; }) ==
        where + "evaluate is missing; give the value on the host");
  CHECK(find_custom_op("test.bad") == nullptr);
}

TEST_CASE("a name is one record's, from all threads") {
  test::register_custom_ops();
  test::register_custom_ops();  // the same records again
  CustomOp other = test::norm_op("test.rms_norm");
  other.threads = 128;
  CHECK(register_error(std::move(other)) ==
        "custom op test.rms_norm: a different op is registered under the name; give one of them "
        "another name; registered ops cannot be changed");
  REQUIRE(find_custom_op("test.rms_norm"));
  CHECK(find_custom_op("test.rms_norm")->threads == 256);
  std::vector<std::thread> threads;
  std::atomic<int> kept = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        CustomOp op = test::norm_op(fmt::format("test.thread{}", i));
        op.threads = 32 + 32 * t;
        kept += register_custom_op(std::move(op)).has_value();
        CHECK(find_custom_op(fmt::format("test.thread{}", i)));
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(kept == 50);
  CHECK(llvm::is_sorted(custom_op_names()));
  CHECK(custom_op_names().size() >= 58);
}

constexpr const char* kModule = R"(module @m {
  symbol N in [0, 64]
  entry @f(%x: f16[N, 512], %w: f16[512]) -> (%y) {
    %y = custom %x, %w {op = "test.rms_norm", numbers = [0x1p-20]} : f16[N, 512]
  }
}
)";

std::string with_op(std::string_view text) {
  std::string module = kModule;
  const size_t begin = module.find("%y = "), end = module.find('\n', begin);
  return module.replace(begin, end - begin, text);
}

std::string module_error(std::string_view text) {
  const auto module = parse_module(with_op(text), "m.sir");
  REQUIRE_FALSE(module.has_value());
  return module.error().message();
}

TEST_CASE("a module with a registered op prints as it is written") {
  test::register_custom_ops();
  CHECK(print_module(value(parse_module(kModule, "m.sir"))) == kModule);
}

TEST_CASE("a module with an op that nobody registered is refused by the op's name") {
  CHECK(module_error("%y = custom %x {op = \"no.such\"} : f16[N, 512]") ==
        "m.sir:4:5: V8: %y: custom: no op is registered under the name \"no.such\" (C23); register "
        "it "
        "in the program that reads the module (ir/custom_op.h)");
  const std::string hostile = module_error("%y = custom %x {op = \"\\x1b[2J" +
                                           std::string(5000, 'a') + "\"} : f16[N, 512]");
  CHECK(hostile.size() < 500);
  CHECK(hostile.find('\x1b') == std::string::npos);
}

/// `op` is what follows "%y = custom ".
void rejects(int constraint, std::string_view op, std::string_view why) {
  CHECK(module_error("%y = custom " + std::string(op)) ==
        fmt::format("m.sir:4:5: V8: %y: custom {} (C{}); change the op or its operands", why,
                    constraint));
}

TEST_CASE("C23 rejects an op that does not fit its record") {
  test::register_custom_ops();
  rejects(23, "%x, %w {op = \"test.rms_norm\"} : f16[N, 512]",
          "\"test.rms_norm\": numbers has 0 elements, the op takes 1");
  rejects(23, "%x, %w {op = \"test.rms_norm\", numbers = [nan]} : f16[N, 512]",
          "\"test.rms_norm\": numbers has nan, no number");
  rejects(23, "%w, %x {op = \"test.rms_norm\", numbers = [1]} : f16[N, 512]",
          "\"test.rms_norm\": operand 1 (w) has dims [N, 512], the signature wants [D]");
  rejects(23, "%x {op = \"test.rms_norm\", numbers = [1]} : f16[N, 512]",
          "\"test.rms_norm\": 1 operands, the signature has 2");
  CHECK(module_error("%y = custom %x, %w {op = \"test.rms_norm\", numbers = [1]} : f16[N, 256]")
            .find("f16[N, 512]") != std::string::npos);
  CHECK(module_error("%y = custom %x, %w : f16[N, 512]") ==
        "m.sir:4:5: V6: %y (custom) lacks its attribute op; add {op = ...}");
  CustomOp rows = test::norm_op("test.rows_of_three");
  rows.row_axes = 3;
  require(register_custom_op(rows));
  rejects(23, "%x, %w {op = \"test.rows_of_three\", numbers = [1]} : f16[N, 512]",
          "\"test.rows_of_three\": the result f16[N, 512] has 2 axes, row_axes is 3");
  rows.name = "test.all_but_three";
  rows.row_axes = -3;
  require(register_custom_op(rows));
  rejects(23, "%x, %w {op = \"test.all_but_three\", numbers = [1]} : f16[N, 512]",
          "\"test.all_but_three\": the result f16[N, 512] has 2 axes, row_axes is -3");
  const Attributes attrs = Attributes()
                               .set(AttrName::op, std::string("test.rms_norm"))
                               .set(AttrName::numbers, std::vector<double>{1});
  const auto deep = infer_type(OpKind::custom, {{DType::f32, Dims(9, Dim(1))}, {DType::f32, {1}}},
                               attrs, symbols());
  REQUIRE_FALSE(deep.has_value());
  CHECK(deep.error().what.find("operand 0 has 9 axes, at most 8 (C23)") != std::string::npos);
}

}  // namespace
}  // namespace sinter::custom_op_test
