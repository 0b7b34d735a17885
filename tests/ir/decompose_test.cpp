// The meaning of composites: decompose.sir becomes decompose_expected.sir. SINTER_BLESS=1 rewrites
// the latter.
#include "ir/decompose.h"

#include <doctest/doctest.h>

#include "ir/text.h"
#include "ir/verifier.h"
#include "support/check_text.h"
#include "support/result.h"

namespace sinter::decompose_test {
namespace {

Module read_module() {
  const std::string path = SINTER_TESTS_DIR "/ir/decompose.sir";
  return value(parse_module(test::read_text(path), path));
}

Module decomposed(Module module) {
  for (Entry& entry : module.entries) entry.graph = decompose_all(entry.graph, module.symbols);
  return module;
}

TEST_CASE("decompositions are the expected ones") {
  const Module module = decomposed(read_module());
  require(verify(module));
  test::check_text_file(print_module(module), "ir/decompose_expected.sir", "decompose");
}

TEST_CASE("decomposing again changes nothing") {
  const Module once = decomposed(read_module());
  CHECK(print_module(decomposed(once)) == print_module(once));
}

TEST_CASE("every composite is decomposed, results keep type and name") {
  const Module before = read_module(), after = decomposed(before);
  std::vector<bool> seen(256, false);
  for (size_t i = 0; i < before.entries.size(); ++i) {
    const Graph &from = before.entries[i].graph, &to = after.entries[i].graph;
    for (const Op& op : from.ops()) seen[static_cast<size_t>(op.kind)] = true;
    for (const Op& op : to.ops()) CHECK(op_class(op) != OpClass::composite);
    REQUIRE(from.outputs.size() == to.outputs.size());
    for (size_t j = 0; j < from.outputs.size(); ++j) {
      CHECK(from[from.outputs[j]].type == to[to.outputs[j]].type);
      CHECK(from[from.outputs[j]].name == to[to.outputs[j]].name);
    }
  }
#define SINTER_OP(name, op_class, least, most, required, optional, ...) \
  if (OpClass::op_class == OpClass::composite)                          \
    CHECK_MESSAGE(seen[static_cast<size_t>(OpKind::name)], #name " is missing in decompose.sir");
#include "ir/ops.def"
}

}  // namespace
}  // namespace sinter::decompose_test
