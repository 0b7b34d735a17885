// The module with every op, tests/ir/every_op.sir, as text.
#pragma once

#include <llvm/ADT/STLExtras.h>

#include <sstream>

#include "ir/graph.h"
#include "support/expected_text.h"

namespace sinter {

inline std::string every_op_text() { return test::read_text(SINTER_TESTS_DIR "/ir/every_op.sir"); }

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
