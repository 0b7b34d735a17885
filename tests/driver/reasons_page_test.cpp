// docs/reasons.md is made here: of every reason its id and sentence from the code, what it means,
// and a module about which `explain` gives that answer.
#include <doctest/doctest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "driver/explain/why.h"
#include "ir/text.h"
#include "support/check_text.h"

namespace sinter::reasons_page_test {
namespace {

struct ReasonExample {
  Reason reason;
  const char* meaning;
  const char* advice;
  const char* module;  // a case of tests/passes/cases
  const char *a, *b;
  const char* option = "";  // that the question is asked with
};

constexpr ReasonExample kExamples[] = {
    {Reason::fused,
     "Both ops are in one kernel: they walk the same rows, and a value that one hands to the other "
     "stays in registers or shared memory.",
     "Nothing. `--why` tells which fusion brought them together and what it saves; `--forbid A,B` "
     "takes them apart for a comparison.",
     "post_ln_residual_and_norm_one_result", "res", "norm"},
    {Reason::fused_horizontal,
     "Kernels of different rows stand side by side in one launch, each in blocks of its own. They "
     "hand each other nothing; what both read is read at about the same time.",
     "Nothing. What is saved is a launch and the second read of what both read.",
     "reductions_over_different_rows", "row", "both"},
    {Reason::space_prefix,
     "A kernel deals rows to blocks. The leading axes that make the rows of the two ops differ, so "
     "that no block has both.",
     "Reshape one of the values so that both have the same leading axes, if the model allows it. "
     "Axes of different symbols differ, even where both have the same value in a call.",
     "prefixes_of_different_tokens", "a", "b"},
    {Reason::space_reduction,
     "One of the ops reduces over axes that are not the trailing ones of its rows: a row's block "
     "does not have the elements.",
     "Transpose the value, so that the reduced axes are the last ones; or let the reduction be a "
     "kernel of columns, which neighbours over the same columns can join.",
     "column_sum_not_with_rows", "row", "column"},
    {Reason::port_closed,
     "The kernel of one of the ops reads this operand, or writes this result, in memory alone: its "
     "family has no fusion port for it.",
     "Nothing. What stands before and after such a kernel fuses among itself.",
     "running_sums_alone", "sum", "out"},
    {Reason::port_of_call,
     "One of the ops is a call of the library of matrix products, which reads and writes memory.",
     "Products of at most eight tokens are kernels of Sinter's own, with ports; with fast numerics "
     "a call takes bias, activation and residual. For others nothing can be done.",
     "path_that_leaves_and_returns", "first", "product"},
    {Reason::port_other_element,
     "One op reads elements of the other that other threads of the kernel hold, as a transposed "
     "read does.",
     "Apply the view to what is read from memory: there it is another order of addresses and costs "
     "nothing.",
     "transposed_read_of_a_computed_value", "big", "out"},
    {Reason::port_gathered,
     "One op reads rows of the other by numbers that are known only when the plan runs: the rows "
     "must stand in memory.",
     "Compute after the lookup in place of before it, on the rows that were looked up.",
     "gathered_read", "scaled", "rows"},
    {Reason::state_version,
     "A state is written in place. A kernel that reads the state, before or after, is another "
     "launch: within one kernel no order is defined. Only a formula of the elements that `store` "
     "replaces is computed by the kernel that stores it.",
     "Read what is written from the value itself and not from the state.",
     "append_and_readers_of_the_state", "old", "next"},
    {Reason::anchor_second,
     "Each of the groups has a product, and a kernel is built around one: the second needs whole "
     "rows of the first.",
     "Nothing; what stands between the two goes into the epilogue of the first or the prologue of "
     "the second, whatever is cheaper.",
     "gemv_second_product", "a", "q"},
    {Reason::anchor_other_block,
     "After a product, a block has the sums of some rows of the matrix. The op needs sums that "
     "other blocks have.",
     "Nothing; the op runs in a kernel after the product. Halves that belong together, as of a "
     "gated MLP, are dealt to one block.",
     "gemv_reduction_not_in_epilogue", "p", "norm"},
    {Reason::convexity_path,
     "A path of other ops leads from one to the other. Together in one kernel they would have to "
     "run before and after what stands between. This is why a pre-LN norm and the residual add "
     "behind attention cannot be one kernel.",
     "Look at the path: whatever is on it stands between. A norm behind the residual add (post-LN) "
     "has nothing between.",
     "path_that_leaves_and_returns", "first", "last"},
    {Reason::numerics_strict,
     "The fused form rounds less often than the two ops do: it would give other bits than the "
     "unfused plan. Strict numerics promise the same bits.",
     "`--numerics fast` allows it. `verify` then measures the difference to float64 in place of "
     "comparing bits.",
     "product_epilogues_strict", "p", "g"},
    {Reason::profit_configuration,
     "No configuration of the kernel fits the device: too many pointers, or rows that do not fit "
     "registers and shared memory.",
     "Shorter rows, or a device with more shared memory; `--forbid` within a large kernel splits "
     "it at a place of your choice.",
     "gemv_rows_too_long_for_a_prologue", "h", "p"},
    {Reason::profit_slower,
     "The cost model finds the one kernel slower than the two: fewer blocks share the work, or "
     "blocks read again what one kernel would have read once. It decides at the upper bounds of "
     "the symbols.",
     "Bound the symbols by what you use (`symbol N in [1, 64]`). `--require A,B` fuses them all "
     "the same only if nothing but time is against it; `bench` measures.",
     "gemv_few_results", "p", "y"},
    {Reason::forbidden, "`--forbid A,B` says so, directly or through other ops of their kernels.",
     "Leave the option out.", "forbidden_pair", "a", "c", "--forbid a,c"},
    {Reason::stopped, "`--stop-after N` ended the engine after N fusions, to find a faulty one.",
     "Give a larger number, or leave the option out.", "stop_after_one_fusion", "b", "c",
     "--stop-after 1"},
    {Reason::no_candidate,
     "Neither reads the other, and they read no value in common: nobody asked. The judge, asked "
     "now, has nothing against it.",
     "`--require A,B` makes the engine ask; a launch is all that it saves.",
     "values_that_share_nothing", "a", "b"},
    {Reason::no_kernel,
     "One of the names is a view, a constant or an input: no kernel computes it, it is a way of "
     "reading another value.",
     "Ask about the op that reads it, or about the value that it reads.",
     "transposed_read_of_an_external_value", "turned", "out"},
};

/// The module of a case without its comments.
std::string module_text(const std::string& name) {
  std::ifstream file(SINTER_TESTS_DIR "/passes/cases/" + name + ".sir");
  REQUIRE_MESSAGE(file, name);
  std::string text;
  for (std::string line; std::getline(file, line);)
    if (!line.starts_with("//")) text += line + '\n';
  return text;
}

std::string answer_of(const ReasonExample& example, const std::string& text) {
  auto module = parse_module(text, example.module);
  REQUIRE(module);
  for (Entry& entry : module->entries) entry.tokens = Tokens::invariant;  // one answer of each
  auto frozen = freeze(std::move(*module), {});
  REQUIRE(frozen);
  CompileOptions options;
  const std::string option = example.option;
  if (option.starts_with("--forbid")) options.fusion.forbidden = {{example.a, example.b}};
  if (option.starts_with("--stop-after")) options.fusion.stop_after = 1;
  const auto compiled = compile(std::move(*frozen), options);
  REQUIRE(compiled);
  const auto answers = why(*compiled, example.a, example.b);
  REQUIRE(answers);
  REQUIRE(answers->size() == 1);
  CAPTURE(example.module);
  CHECK(answers->front().decision.reason == reason_id(example.reason));
  CHECK(answers->front().decision.change.empty() == answers->front().decision.fused);
  return why_text(*answers);
}

TEST_CASE("docs/reasons.md has every reason, with an answer as it is given") {
  std::string page =
      "# Reasons\n\n"
      "`sinter explain MODEL --why A B` answers with one of these reasons, and the ledger has one "
      "for each decision. A refusal ends with what would have to change. This page is made by "
      "`tests/driver/reasons_page_test.cpp` from the code and from answers as they are given.\n\n"
      "| id | sentence |\n| --- | --- |\n";
  std::set<Reason> told;
  for (const ReasonExample& example : kExamples) {
    const std::string id(reason_id(example.reason));
    std::string anchor = "#";
    for (char c : id)
      if (c != '.') anchor += c;
    if (example.reason == Reason::port_of_call) anchor += "-1";  // the second heading of this id
    page += fmt::format("| [`{}`]({}) | {} |\n", id, anchor, reason_text(example.reason));
    told.insert(example.reason);
  }
  size_t reasons = 0;
#define X(name, id, text) ++reasons;
  SINTER_REASONS(X)
#undef X
  CHECK(told.size() == reasons);
  CHECK(std::size(kExamples) == reasons);
  for (const ReasonExample& example : kExamples) {
    const std::string text = module_text(example.module);
    page += fmt::format(
        "\n## `{}`\n\n{}\n\n**What to do.** {}\n\n```\n{}```\n\n```\n$ sinter explain module.sir "
        "--why {} {}{}{}\n{}```\n",
        reason_id(example.reason), example.meaning, example.advice, text, example.a, example.b,
        *example.option ? " " : "", example.option, answer_of(example, text));
  }
  test::check_text_file(page, "../docs/reasons.md", "reasons_page");
}

}  // namespace
}  // namespace sinter::reasons_page_test
