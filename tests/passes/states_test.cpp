// A pass that does not ask the rewriter whether it may read a state.
#include <doctest/doctest.h>

#include "ir/guarded.h"
#include "ir/match.h"
#include "ir/text.h"
#include "passes/pipeline.h"
#include "passes/rewrite_graph.h"
#include "support/result.h"

namespace sinter::test::states_test {
namespace {

/// exp_neg_abs reads what a sign is of, wherever that stands.
class UnaskedSign : RewriteRule {
 public:
  using RewriteRule::RewriteRule;

  std::optional<ValueId> replaced(ValueId, const Op& op) {
    ValueId x;
    if (op.kind != OpKind::exp_neg_abs ||
        !match::neg(match::value(x))(builder_.graph(), op.operands[0]))
      return std::nullopt;
    return builder_.op(op.kind, {x}, op.attrs, op.name);
  }
};

bool drop_signs(Module& module, const PassOptions&) {
  return replace_ops<UnaskedSign>(module, OpKind::exp_neg_abs);
}

/// The text of the module after a pass that drops signs, or the broken invariant.
std::string after_pass(std::string_view ops) {
  Module module = value(parse_module(fmt::format(R"(module @m {{
  state %s : f32[1, 4]
  entry @f(%x: f32[1, 4], %row: i32[1]) -> (%y) {{
{}  }}
}}
)",
                                                 ops),
                                     "test"));
  const InvariantsThrow throws;
  try {
    run_pass({"drop_signs", drop_signs}, module, {});
  } catch (const BrokenInvariant& broken) {
    return broken.error.what;
  }
  return print_module(module);
}

TEST_CASE("a pass that reads a state behind its append is named with the op") {
  const std::string what = after_pass(R"(    %n = neg %s
    %next = kv_append %s, %x, %row
    %y = exp_neg_abs %n
)");
  CHECK_MESSAGE(what.find("after drop_signs: ") != std::string::npos, what);
  CHECK_MESSAGE(what.find("y reads s behind next, which overwrites it") != std::string::npos, what);
}

TEST_CASE("a read through views is found too") {
  const std::string what = after_pass(R"(    %turned = transpose %s {axes = [1, 0]}
    %n = neg %turned
    %next = kv_append %s, %x, %row
    %y = exp_neg_abs %n
)");
  CHECK_MESSAGE(what.find("y reads turned behind next") != std::string::npos, what);
}

TEST_CASE("a read before the append, and one of the next version, are as good as any") {
  CHECK(after_pass(R"(    %n = neg %s
    %y = exp_neg_abs %n
    %next = kv_append %s, %x, %row
)")
            .find("%y = exp_neg_abs %s") != std::string::npos);
  CHECK(after_pass(R"(    %next = kv_append %s, %x, %row
    %n = neg %next
    %y = exp_neg_abs %n
)")
            .find("%y = exp_neg_abs %next") != std::string::npos);
}

}  // namespace
}  // namespace sinter::test::states_test
