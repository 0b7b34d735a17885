// docs/sir.md is made here, from the tables of ops, attributes, element types and constraints and
// from examples, each of which is verified: fused, unfused and in float64.
#include <doctest/doctest.h>

#include <filesystem>

#include "cli/program.h"
#include "docs/sir_examples.h"
#include "docs/source_tables.h"
#include "driver/verify/report.h"
#include "driver/verify/verify.h"
#include "ir/decompose.h"
#include "ir/text.h"
#include "support/check_text.h"
#include "support/custom_ops.h"
#include "support/result.h"

namespace sinter::sir_page_test {
namespace {

using test::OpExample;

/// The text before the tables: prose, and lines "@@ COMMAND" that the test replaces.
std::string head_text() { return test::read_text(SINTER_TESTS_DIR "/docs/sir_head.md"); }

std::string module_text(const std::string& name, const std::string& parts) {
  return fmt::format("module @{} {{\n  symbol N in [1, 16]\n{}\n}}\n", name, parts);
}

/// An entry for every elementwise op that computes in `domain`.
std::string elementwise_module() {
  std::string ops, outputs;
  const auto add = [&](std::string_view name, int operands, OpInfo::Domain domain) {
    const char* values = domain == OpInfo::Domain::truth     ? "%p, %q"
                         : domain == OpInfo::Domain::integer ? "%i, %j"
                                                             : "%a, %b";
    ops += fmt::format("    %{} = {} {}\n", name, name,
                       std::string(values).substr(0, operands == 1 ? 2 : 6));
    outputs += fmt::format("{}%{}", outputs.empty() ? "" : ", ", name);
  };
#define SINTER_ELEMENTWISE(name, operands, result, domain, ...) \
  add(#name, operands, OpInfo::Domain::domain);
#include "ir/ops.def"
  return module_text(
      "elementwise",
      "  entry @e(%a: f32[N, 8], %b: f32[8], %i: i32[N, 8], %j: i32[8], %p: i1[N, 8], "
      "%q: i1[8]) -> (" +
          outputs + ") {\n" + ops + "  }");
}

void check_runs(const std::string& name, const std::string& text) {
  CAPTURE(text);
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/" + name + ".sir";
  write_whole(path, text);
  VerifyOptions options;
  options.backend = value(Backend::open({.device = "cpu", .record = {}, .progress = {}}));
  options.open.random_weights = 1;
  const VerifyReport report = value(verify_model(path, options));
  CHECK_MESSAGE(report.passed(), verify_text(report));
  REQUIRE(report.dtypes.size() == 1);
  CHECK(report.dtypes[0].calls > 0);
  CHECK(report.dtypes[0].elements > 0);
}

std::string_view type_of(AttrName name) {
  constexpr std::string_view kTypes[] = {
      "an integer",        "a number",           "an element type",   "an extent",
      "a list of extents", "a list of integers", "a list of numbers", "a string",
      "a number",          "a list of numbers",  "an order"};
  return kTypes[attr_type_index(name)];
}

std::string attributes_of(const test::Algorithm& algorithm) {
  std::string text;
  const auto add = [&](llvm::ArrayRef<AttrName> names, std::string_view more) {
    for (AttrName name : names)
      text += fmt::format("{}`{}`{}", text.empty() ? "" : ", ", to_string(name), more);
  };
  const OpInfo& info = op_info(algorithm.kind);
  if (algorithm.order) {
    const OrderInfo& order = order_info(*algorithm.order);
    add(order.required, "");
    add(order.optional, " (optional)");
    return text + fmt::format("{}those of `{}`", text.empty() ? "" : ", ", info.name);
  }
  add(info.required, "");
  add(info.optional, " (optional)");
  return text.empty() ? "none" : text;
}

std::string roles_of(const test::Algorithm& algorithm) {
  constexpr std::string_view kNames[] = {
#define ROLE(name) #name
      ROLE(value), ROLE(row),    ROLE(matrix), ROLE(stream), ROLE(bias), ROLE(table),
      ROLE(state), ROLE(update), ROLE(base),   ROLE(cache),  ROLE(id),   ROLE(slot),
      ROLE(first), ROLE(last),   ROLE(target), ROLE(group)
#undef ROLE
  };
  std::string text;
  const int most = max_operands(algorithm.kind, algorithm.order);
  for (int i = 0; i < std::min(most, 6); ++i) {
    const OperandRole role = operand_role(algorithm.kind, algorithm.order, static_cast<size_t>(i));
    text += fmt::format("{}{}", i ? ", " : "", kNames[role.kind]);
    if (role.rows_of == OperandRole::kResult)
      text += " of the result";
    else if (role.is_address())
      text += fmt::format(" of operand {}", role.rows_of);
  }
  return text + (most > 6 ? ", …" : "");
}

std::string numbers_text(const std::set<int>& numbers) {
  std::string text;
  for (int number : numbers) text += fmt::format("{}C{}", text.empty() ? "" : ", ", number);
  return text.empty() ? "none of its own" : text;
}

std::string facts_of(const test::Algorithm& algorithm) {
  const int least = op_info(algorithm.kind).min_operands,
            most = max_operands(algorithm.kind, algorithm.order);
  std::string text;
  if (most > 0)
    text +=
        fmt::format("- operands: {} ({})\n",
                    least == most ? std::to_string(least) : fmt::format("{} to {}", least, most),
                    roles_of(algorithm));
  return text + fmt::format("- attributes: {}\n- constraints: {}\n", attributes_of(algorithm),
                            numbers_text(test::constraints_of(algorithm)));
}

std::string_view domain_text(OpInfo::Domain domain) {
  switch (domain) {
    case OpInfo::Domain::real:
      return "a float type";
    case OpInfo::Domain::number:
      return "a float type, i32 or i64";
    case OpInfo::Domain::integer:
      return "i32 or i64";
    case OpInfo::Domain::truth:
      return "i1";
  }
  SINTER_CHECK(false, "domain");
}

std::string elementwise_section() {
  std::string table = "| op | of | gives | formula |\n| --- | --- | --- | --- |\n";
  const auto add = [&](OpKind kind) {
    const OpInfo& info = op_info(kind);
    std::string formula;
    for (char c : info.formula) formula += c == '|' ? std::string("\\|") : std::string(1, c);
    table += fmt::format("| `{}` | {} | {} | `{}` |\n", info.name, domain_text(info.domain),
                         info.result == OpInfo::Result::truth ? "i1" : "the same", formula);
  };
#define SINTER_ELEMENTWISE(name, ...) add(OpKind::name);
#include "ir/ops.def"
  return fmt::format(
      "An element of the result comes from the elements of the operands a, b at its place. All "
      "operands have one element type. Shapes broadcast as in NumPy: aligned at the last axis, "
      "extents of 1 repeated. Float types are computed in float32 and rounded once; i32 and "
      "i64 wrap around. None has an attribute. Constraints: {}.\n\n{}\n{}\n```\n{}```\n",
      numbers_text(test::constraints_of({OpKind::add})), table, test::elementwise_rules(),
      elementwise_module());
}

std::string op_section(const OpExample& example) {
  const test::Algorithm& algorithm = example.algorithm;
  const std::string text = module_text(std::string(algorithm.name()), example.module);
  std::string section = fmt::format("### `{}`\n\n`{}`\n\n{}\n\n{}\n```\n{}```\n", algorithm.name(),
                                    example.signature, example.meaning, facts_of(algorithm), text);
  if (algorithm.op_class() != OpClass::composite) return section;
  const Module module = value(parse_module(text, "example"));
  return section + fmt::format("\nThe result is that of\n\n```\n{}```\n",
                               print_graph(decompose_all(module.entries[0].graph, module.symbols),
                                           module.symbols));
}

std::string tables() {
  std::string text = "## Attributes\n\n| name | value | meaning |\n| --- | --- | --- |\n";
  const auto meanings = test::attribute_texts();
#define X(name, type)                                                         \
  REQUIRE_MESSAGE(meanings.count(AttrName::name), #name);                     \
  text += fmt::format("| `{}` | {} | {} |\n", #name, type_of(AttrName::name), \
                      meanings.at(AttrName::name));
  SINTER_ATTRIBUTES(X)
#undef X
  text +=
      "\n## Roles of operands\n\nThe role says what an op does with an operand, and with it what "
      "fusion, costs and checks may assume. Operands are counted from 0.\n\n| role | meaning |\n"
      "| --- | --- |\n";
  const auto roles = test::role_texts();
  CHECK(roles.size() == 16);
  for (const auto& [name, meaning] : roles) text += fmt::format("| {} | {} |\n", name, meaning);
  text +=
      "\n## Constraints of ops\n\nAn error names the number: `%y: add: shapes [N, 8] and [N, 9] do "
      "not broadcast (C2)`. C1 and C20 hold for every op.\n\n";
  for (const auto& [number, meaning] : test::constraint_texts())
    text += fmt::format("- **C{}** {}\n", number, meaning);
  text += "\n## Invariants of modules\n\nAn error begins with the number.\n\n";
  for (const auto& [number, meaning] : test::invariant_texts())
    text += fmt::format("- **V{}** {}\n", number, meaning);
  return text;
}

/// Every op with an example, by class.
std::string ops() {
  std::string text =
      "## Ops\n\nThe types of operands and result are written like calls; `?` marks an operand "
      "that "
      "may be left out. Each example is a whole module.\n";
  for (const test::ClassText& part : test::class_texts()) {
    text += fmt::format("\n## {}\n", part.heading);
    if (*part.text) text += fmt::format("\n{}\n", part.text);
    if (part.op_class == OpClass::elementwise) {
      text += "\n" + elementwise_section();
      continue;
    }
    for (const OpExample& example : test::op_examples())
      if (example.algorithm.op_class() == part.op_class) text += "\n" + op_section(example);
  }
  return text;
}

/// The text with each line "@@ COMMAND" replaced by the command and what it prints, run in a folder
/// that has the page's blocks ```sir NAME. No GPU is used: the page is the same everywhere.
std::string with_commands(const std::string& text) {
  const TemporaryDirectory folder;
  std::string page, block;
  std::string* open = nullptr;
  std::istringstream lines(text);
  std::string file;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```sir ")) {
      file = line.substr(7), block.clear(), open = &block;
      page += "```\n";
      continue;
    }
    if (line == "```" && open) {
      write_whole(folder.path() + "/" + file, block);
      open = nullptr;
    }
    if (open) *open += line + "\n";
    if (!line.starts_with("@@ ")) {
      page += line + "\n";
      continue;
    }
    const std::string command = line.substr(3);
    const ProgramRun run =
        run_shell("cd '" + folder.path() +
                  "' && sinter() { CUDA_VISIBLE_DEVICES= \"$SINTER\" \"$@\"; } && " + command);
    CHECK_MESSAGE((run.code == 0 || run.code == 4), command, run.err);
    page += "$ " + command + "\n" + run.out + run.err;
  }
  return page;
}

}  // namespace

TEST_CASE("every op has an example, and every example is verified") {
  test::register_custom_ops();
  std::set<test::Algorithm> shown;
  for (const OpExample& example : test::op_examples()) {
    const std::string name(example.algorithm.name());
    CAPTURE(name);
    shown.insert(example.algorithm);
    const std::string text = module_text(name, example.module);
    const Module module = value(parse_module(text, name));
    bool used = false;
    const auto look = [&](const Graph& graph) {
      for (const Op& op : graph.ops()) used |= test::algorithm_of(op) == example.algorithm;
    };
    for (const Weight& weight : module.weights) look(weight.init);
    look(module.entries[0].graph);
    CHECK(used);
    check_runs(name, text);
  }
  check_runs("elementwise", elementwise_module());
  for (const test::Algorithm& algorithm : test::all_algorithms()) {
    const OpClass c = algorithm.op_class();
    if (c != OpClass::leaf && c != OpClass::elementwise)
      CHECK_MESSAGE(shown.contains(algorithm), algorithm.name());
  }
}

TEST_CASE("every constraint is one of some op") {
  std::set<int> named = {1, 20};  // of all
  for (const test::Algorithm& algorithm : test::all_algorithms())
    named.merge(test::constraints_of(algorithm));
  for (const auto& [number, meaning] : test::constraint_texts())
    CHECK_MESSAGE(named.contains(number), "C", number);
  CHECK(test::constraints_of({OpKind::linear, Order::gemv}) == std::set<int>{16});
  CHECK(test::constraints_of({OpKind::reduce_sum}) == std::set<int>{8, 13});
}

TEST_CASE("docs/sir.md is made from the code") {
  test::register_custom_ops();
  std::string types;
#define SINTER_DTYPE(name, bits, ...) \
  types += fmt::format("{}`{}`", types.empty() ? "" : ", ", #name);
#include "ir/dtypes.def"
  std::string head = head_text();
  const size_t at = head.find("@TYPES@");
  REQUIRE(at != std::string::npos);
  head.replace(at, 7, types);
  test::check_text_file(with_commands(head) + "\n" + ops() + "\n" + tables(), "../docs/sir.md",
                        "sir_page");
}

}  // namespace sinter::sir_page_test
