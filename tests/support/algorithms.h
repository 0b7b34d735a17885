// Every algorithm that an op may be computed by: each op, and each order of an op that has several.
// Tests that go through all ops go through this list.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace sinter::test {

struct Algorithm {
  OpKind kind;
  std::optional<Order> order = {};

  std::string_view name() const { return order ? to_string(*order) : op_info(kind).name; }
  OpClass op_class() const { return order ? OpClass::anchor : op_info(kind).op_class; }
  friend auto operator<=>(const Algorithm&, const Algorithm&) = default;
};

inline Algorithm algorithm_of(const Op& op) { return {op.kind, order_of(op)}; }

/// In the order of ops.def and orders.def.
inline std::vector<Algorithm> all_algorithms() {
  std::vector<Algorithm> all = {
#define SINTER_OP(name, ...) {OpKind::name},
#define SINTER_ELEMENTWISE(name, ...) {OpKind::name},
#include "ir/ops.def"
  };
#define SINTER_ORDER(name, op, ...) all.push_back({OpKind::op, Order::name});
#include "ir/orders.def"
  return all;
}

}  // namespace sinter::test
