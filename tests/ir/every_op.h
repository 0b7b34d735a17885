// The module with every op, as text: tests/ir/every_op.sir, and an entry with the elementwise ops
// of the table.
#pragma once

#include <llvm/ADT/STLExtras.h>

#include <sstream>

#include "ir/graph.h"
#include "support/expected_text.h"

namespace sinter {

/// An entry with every elementwise op, as the printer writes it.
inline std::string elementwise_entry() {
  std::string outputs, ops;
  const auto add = [&](const OpInfo& info) {
    const bool is_truth = info.domain == OpInfo::Domain::truth;
    const bool is_integer = info.domain == OpInfo::Domain::integer;
    const std::string x = is_truth ? "%t" : is_integer ? "%i" : "%x";
    const bool gives_truth = info.result == OpInfo::Result::truth || is_truth;
    outputs += fmt::format("{}%{}", outputs.empty() ? "" : ", ", info.name);
    ops += fmt::format("    %{0} = {0} {1}{2} : {3}[N, 16]\n", info.name, x,
                       info.min_operands == 2 ? ", " + x : "",
                       gives_truth  ? "i1"
                       : is_integer ? "i64"
                                    : "f32");
  };
#define SINTER_ELEMENTWISE(name, ...) add(op_info(OpKind::name));
#include "ir/ops.def"
  return fmt::format(
      "  entry @elementwise(%x: f32[N, 16], %i: i64[N, 16], %t: i1[N, 16]) -> ({}) {{\n{}  }}\n",
      outputs, ops);
}

inline std::string every_op_text() {
  std::string text = test::read_text(SINTER_TESTS_DIR "/ir/every_op.sir");
  return text.insert(text.find("  entry @leaf"), elementwise_entry());
}

/// The same without the types of ops, but for those that a required attribute is read from.
inline std::string every_op_without_types() {
  std::istringstream lines(every_op_text());
  std::string loose;
  for (std::string line; std::getline(lines, line);) {
    const size_t op = line.find(" = "), type = line.rfind(" : ");
    if (op != std::string::npos && type != std::string::npos && type > op) {
      const std::string name = line.substr(op + 3, line.find(' ', op + 3) - op - 3);
      const auto& required = op_info(*parse_op_kind(name)).required;
      if (!llvm::is_contained(required, AttrName::dims) &&
          !llvm::is_contained(required, AttrName::dtype))
        line = line.substr(0, type);
    }
    loose += line + '\n';
  }
  return loose;
}

}  // namespace sinter
