// The text of docs/sir.md about each op beyond its row in the op table, with a module to show it.
#pragma once

#include <llvm/ADT/ArrayRef.h>

#include "support/algorithms.h"

namespace sinter::test {

struct OpExample {
  Algorithm algorithm;
  const char* signature;  // operands with their types -> the result's
  const char* meaning;
  const char* module;  // text of one entry or more, weights and states; the page adds the head
};

/// Every op but leaves and elementwise ones, and every order, in the order of the page.
llvm::ArrayRef<OpExample> op_examples();

/// The page's heading of the ops of a class.
struct ClassText {
  OpClass op_class;
  const char* heading;
  const char* text;
};
llvm::ArrayRef<ClassText> class_texts();

/// The page's list of special values of elementwise ops.
std::string_view elementwise_rules();

}  // namespace sinter::test
