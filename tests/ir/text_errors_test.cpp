// Bad text gives an error that names the place and says what to do; nothing crashes.
#include <doctest/doctest.h>

#include <cctype>

#include "ir/every_op.h"
#include "ir/text.h"

namespace sinter::text_errors_test {
namespace {

/// The message for `text`, which must be refused at line:column.
std::string refused(std::string_view text, std::string_view line_column) {
  const auto module = parse_module(text, "bad.sir");
  REQUIRE_FALSE(module.has_value());
  const Error& error = module.error();
  CHECK(error.where == fmt::format("bad.sir:{}", line_column));
  CHECK_FALSE(error.hint.empty());
  CHECK((error.code == ExitCode::bad_input));
  REQUIRE_FALSE(error.what.empty());
  CHECK_FALSE((error.what[0] >= 'A' && error.what[0] <= 'Z' && error.what[0] != 'V'));
  for (char c : error.message()) CHECK((static_cast<unsigned char>(c) >= 0x20));
  return error.message();
}

bool contains(const std::string& text, std::string_view part) {
  const bool found = text.find(part) != std::string::npos;
  if (!found) MESSAGE("\"", std::string(part), "\" is not in: ", text);
  return found;
}

/// An entry with the inputs x, y: f32[N, 4]; the ops begin in column 1 of line 3.
std::string with_ops(std::string_view ops, std::string_view output = "x") {
  return fmt::format(
      "module @m {{ symbol N in [1, 8]\nentry @e(%x: f32[N, 4], %y: f32[N, 4]) -> (%{}) {{\n{}\n}} "
      "}}",
      output, ops);
}

}  // namespace

TEST_CASE("use before definition") {
  const std::string message =
      refused(with_ops("%a = neg %b : f32[N, 4]\n%b = neg %x : f32[N, 4]"), "3:10");
  CHECK(contains(message, "%b is used before its definition at bad.sir:4:1"));
}

TEST_CASE("cycle") {
  const std::string two = refused(
      with_ops("%a = add %x, %b {} : f32[N, 4]\n%b = add %a, %x {} : f32[N, 4]", "b"), "3:14");
  CHECK(contains(two, "%b is used before its definition at bad.sir:4:1"));
  CHECK(contains(refused(with_ops("%a = neg %a : f32[N, 4]"), "3:10"), "no value %a"));
}

TEST_CASE("use of nothing") {
  CHECK(contains(refused(with_ops("%a = neg %nowhere : f32[N, 4]"), "3:10"), "no value %nowhere"));
  CHECK(contains(refused(with_ops("", "nowhere"), "2:44"), "no value %nowhere"));
  // A value of another entry is none of this one's.
  CHECK(contains(refused("module @m { entry @a() -> (%v) { }\n"
                         "entry @b() -> () { %v = constant {value = 0} : f32[] } }",
                         "1:28"),
                 "no value %v"));
}

TEST_CASE("redefinition") {
  CHECK(contains(refused(with_ops("%a = neg %x : f32[N, 4]\n%a = neg %y : f32[N, 4]"), "4:1"),
                 "redefinition of %a, first defined at bad.sir:3:1"));
  CHECK(contains(refused(with_ops("%x = neg %x : f32[N, 4]"), "3:1"),
                 "first defined at bad.sir:2:10"));
  CHECK(contains(
      refused(
          "module @m { state %s : f32[2]\nentry @e() -> () {\n%s = iota {axis = 0} : i32[2] } }",
          "3:1"),
      "redefinition of %s, first defined at bad.sir:1:19"));
  CHECK(contains(
      refused("module @m { state %s : f32[2]\nweight %s : f32[2] = constant {value = 0} }", "2:8"),
      "redefinition of %s"));
  CHECK(contains(refused("module @m { symbol N in [1, 2]\nsymbol N in [1, 2] }", "2:8"),
                 "redefinition of 'N'"));
  CHECK(contains(refused("module @m { entry @e() -> () {}\nentry @e() -> () {} }", "2:7"),
                 "redefinition of @e"));
}

TEST_CASE("wrong arity") {
  CHECK(contains(refused(with_ops("%a = add %x : f32[N, 4]"), "3:1"), "takes 2 operands, got 1"));
  CHECK(
      contains(refused(with_ops("%a = neg %x, %y : f32[N, 4]"), "3:1"), "takes 1 operands, got 2"));
  CHECK(contains(refused(with_ops("%a = layer_norm %x {eps = 1} : f32[N, 4]"), "3:1"),
                 "takes 2 to 3 operands, got 1"));
}

TEST_CASE("bad axis") {
  CHECK(
      contains(refused(with_ops("%a = reduce_sum %x {axes = [2]} : f32[N, 4]"), "3:1"), "axis 2"));
  CHECK(contains(refused(with_ops("%a = reduce_sum %x {axes = [-1]} : f32[N, 4]"), "3:1"),
                 "axis -1"));
  CHECK(contains(
      refused(with_ops("%a = reduce_sum %x {axes = [99999999999999999999]} : f32[N, 4]"), "3:29"),
      "is not between"));
  CHECK(contains(
      refused(with_ops("%a = slice %x {axis = 1.5, begin = 0, size = 1} : f32[N, 1]"), "3:23"),
      "expected a value of attribute axis, got '1.5'"));
}

TEST_CASE("dims whose product passes 2^48 bytes") {
  CHECK(contains(refused(with_ops("%a = broadcast %x : f32[4294967296, 4294967296, N, 4]"), "3:1"),
                 "2^48"));
  CHECK(contains(refused("module @m {\nstate %s : f16[4611686018427387904] }", "2:7"), "2^48"));
  CHECK(contains(refused("module @m {\nstate %s : f16[9223372036854775808] }", "2:16"),
                 "is not between"));
  CHECK(
      contains(refused("module @m {\nstate %s : f16[-1] }", "2:16"), "an extent of -1 is below 0"));
  CHECK(
      contains(refused("module @m { symbol N in [1, 2147483648]\nstate %s : f16[N, N, 2] }", "2:7"),
               "2^48"));
}

TEST_CASE("100,000 nested parentheses") {
  for (const char c : {'(', '[', '{'}) {
    const std::string deep(100000, c);
    for (std::string_view head :
         {"", "module @m ", "module @m { entry @e", "module @m { state %s : f16",
          "module @m { entry @e() -> () { %a = neg "})
      CHECK_FALSE(parse_module(std::string(head) + deep, "bad.sir").has_value());
  }
}

TEST_CASE("types and attributes") {
  CHECK(contains(refused(with_ops("%a = neg %x : f16[N, 4]"), "3:1"), "states f16[N, 4]"));
  CHECK(contains(refused(with_ops("%a = neg %x : f64[N, 4]"), "3:15"),
                 "f32 f16 bf16 i32 i64 i1, got 'f64'"));
  CHECK(contains(refused(with_ops("%a = neg %x : f32[M, 4]"), "3:19"), "no symbol 'M'"));
  CHECK(contains(refused(with_ops("%a = neg %x {speed = 1} : f32[N, 4]"), "3:14"),
                 "no attribute 'speed'"));
  CHECK(contains(refused(with_ops("%a = neg %x {axis = 1} : f32[N, 4]"), "3:1"),
                 "has no attribute axis"));
  CHECK(contains(refused(with_ops("%a = softmaks %x : f32[N, 4]"), "3:6"), "is 'softmax' meant?"));
  CHECK(contains(refused(with_ops("%a = constant {value = 1, value = 2} : f32[]"), "3:27"),
                 "stands twice"));
  CHECK(contains(refused(with_ops("%a = constant {value = 1e999} : f32[]"), "3:24"),
                 "out of the range"));
  CHECK(contains(refused(with_ops("%a = constant {value = --1} : f32[]"), "3:24"),
                 "expected a value"));
  CHECK(contains(refused(with_ops("%a = constant {value = 0x} : f32[]"), "3:24"),
                 "expected a value"));
  CHECK(contains(refused(with_ops("%a = cast %x {dtype = f16} : f32[N, 4]"), "3:1"),
                 "give f16[N, 4]"));
}

TEST_CASE("ops without a type") {
  CHECK(contains(refused(with_ops("%a = add %x, %h\n%h = neg %x"), "3:14"),
                 "%h is used before its definition at bad.sir:4:1"));
  CHECK(contains(refused(with_ops("%a = reduce_sum %x {axes = [2]}"), "3:1"),
                 "%a: reduce_sum: axis 2 of an operand of rank 2 (C8)"));
  CHECK(contains(refused(with_ops("%a = add %x"), "3:1"), "takes 2 operands, got 1 (C1)"));
  CHECK(contains(refused(with_ops("%t = transpose %x {axes = [1, 0]}\n%a = add %x, %t"), "4:1"),
                 "shapes [N, 4] and [4, N] do not broadcast (C2)"));
  CHECK(
      contains(refused(with_ops("%a = reshape %x"), "3:1"),
               "%a has no type, and the op 'reshape' no attribute dims to infer it from; write ': "
               "TYPE' behind the op, or the attribute dims"));
  CHECK(contains(refused(with_ops("%a = cast %x"), "3:1"), "no attribute dtype to infer it from"));
  CHECK(contains(refused(with_ops("%a = constant {dims = [2], value = 1}"), "3:1"),
                 "no attribute dtype to infer it from"));
  CHECK(contains(refused(with_ops("%a = neg %x f32[N, 4]"), "3:13"),
                 "expected an op, %name = ..., or '}', got 'f32'"));
  CHECK(contains(refused(with_ops("%a = weight {}"), "4:1"), "expected ':', got '}'"));
  // Nothing has been verified yet where a type is inferred.
  CHECK(contains(refused("module @m { symbol N in [4, 1] step 0\nentry @e(%x: f32[N, 9]) -> (%a) "
                         "{\n%a = reshape %x {dims = [9, N]} } }",
                         "1:20"),
                 "symbol N is in [4, 1]"));
  CHECK(contains(refused("module @m { entry @e(%x: f32[4294967296, 4294967296]) -> (%a) {\n"
                         "%a = concat %x, %x {axis = 0} } }",
                         "2:1"),
                 "2^48"));
}

TEST_CASE("symbols") {
  CHECK(contains(refused("module @m {\nsymbol N in [4, 1] }", "2:8"), "[4, 1]"));
  CHECK(contains(refused("module @m {\nsymbol N in [1, 4] step 0 }", "2:8"), "step 0"));
  CHECK(contains(refused("module @m {\nsymbol N in [1, 4] at_most N }", "2:28"), "no symbol 'N'"));
  CHECK(contains(refused("module @m {\nsymbol N in [1, 4] at_most 4 }", "2:8"),
                 "a constant stands after at_most"));
  CHECK(contains(refused("module @m {\nsymbol N in [1, 4] device }", "2:8"),
                 "symbol N is marked `device`: no plan can have sizes that only the device knows"));
  CHECK(contains(refused("module @m {\nsymbol %N in [1, 4] }", "2:8"),
                 "expected a symbol's name, got %N"));
}

TEST_CASE("texts that are no module") {
  CHECK(contains(refused("", "1:1"), "expected 'module', got the end of the text"));
  CHECK(contains(refused("\n\n  // nothing\n", "4:1"), "got the end of the text"));
  CHECK(contains(refused("modul @m {}", "1:1"), "got 'modul'"));
  CHECK(contains(refused("module @m {} }", "1:14"), "expected the end of the text, got '}'"));
  CHECK(contains(refused("module @m { fn }", "1:13"), "got 'fn'"));
  CHECK(contains(refused("module @ {}", "1:8"), "no name after '@'"));
  CHECK(contains(refused("module @m { # }", "1:13"), "unexpected character '#'"));
  CHECK(contains(refused(std::string_view("\0\0", 2), "1:1"), "unexpected character '\\x00'"));
  CHECK(contains(refused("\xEF\xBB\xBFmodule @m {}", "1:1"), "unexpected character"));
}

TEST_CASE("names") {
  const auto named = [](std::string_view quoted) {
    return fmt::format("module @m {{\nstate %\"{}\" : f16[2] }}", quoted);
  };
  for (std::string_view good :
       {"a\\nb", "#include <x>", "*/", "\\\"", "tail\\\\", "__global__", "a\tb"})
    CHECK_MESSAGE(parse_module(named(good), "good.sir").has_value(), std::string(good));
  CHECK(contains(refused(named("a\nb"), "2:8"), "does not end on its line"));
  CHECK(contains(refused(named("tail\\"), "2:8"), "does not end on its line"));
  CHECK(contains(refused(named("\\q"), "2:9"), "unknown escape"));
  CHECK(contains(refused(named("\\x4"), "2:9"), "unknown escape"));
  CHECK(contains(refused(named("\xFF\xFE"), "2:7"), "is not UTF-8: \"\\xff\\xfe\""));
  CHECK(contains(refused(named("\\xc0\\x80"), "2:7"), "is not UTF-8"));
  CHECK(contains(refused(named(""), "2:7"), "has 0 bytes"));
  const std::string message = refused(named(std::string(1 << 20, 'n')), "2:7");
  CHECK(contains(message, "has 1048576 bytes"));
  CHECK(message.size() < 1000);
  CHECK(refused(with_ops("%a = neg %\"" + std::string(1 << 20, '\n')), "3:11").size() < 1000);
  CHECK(refused(with_ops("%a = neg %" + std::string(1 << 20, 'n')), "3:10").size() < 1000);
}

TEST_CASE("a text cut at any byte parses or is refused") {
  const std::string text = every_op_text();
  REQUIRE(text.size() > 3000);
  for (size_t size = 0; size < text.size(); ++size) {
    const auto module = parse_module(std::string_view(text).substr(0, size), "cut.sir");
    // All but the last line end belongs to the module.
    CHECK(module.has_value() == (size + 1 == text.size()));
    if (!module) CHECK(module.error().where.starts_with("cut.sir:"));
  }
}

TEST_CASE("a text with any byte changed parses or is refused") {
  for (const std::string& text : {every_op_text(), every_op_without_types()}) {
    uint64_t random = 1;
    size_t refusals = 0;
    for (size_t at = 0; at < text.size(); ++at) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      std::string changed = text;
      changed[at] = static_cast<char>(random >> 56);
      const auto module = parse_module(changed, "changed.sir");
      refusals += !module;
      if (!module) CHECK(module.error().where.starts_with("changed.sir:"));
    }
    CHECK(refusals > text.size() / 4);
  }
}

TEST_CASE("numbers of any size, where types are inferred before they are verified") {
  for (const char* number : {"0", "-1", "7", "9223372036854775807", "-9223372036854775808"}) {
    const std::string text = every_op_without_types();
    for (size_t at = 0; at < text.size(); ++at) {
      if (!std::isdigit(static_cast<unsigned char>(text[at])) || text[at - 1] != ' ') continue;
      std::string changed = text;
      changed.replace(at, changed.find_first_of(",}])", at) - at, number);
      const auto module = parse_module(changed, "changed.sir");
      if (!module) CHECK(module.error().where.starts_with("changed.sir:"));
    }
  }
}

TEST_CASE("binary junk is refused") {
  uint64_t random = 7;
  for (int round = 0; round < 200; ++round) {
    std::string junk = round % 2 ? "module @m {" : "";
    for (int i = 0; i < 300; ++i) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      junk += static_cast<char>(random >> 56);
    }
    CHECK_FALSE(parse_module(junk, "junk").has_value());
  }
}

}  // namespace sinter::text_errors_test
