// Integers and truth values that are the same in every call are said by their places:
//
//   %i = iota {axis = 0}   %j = add %i, 1   %k = sub %j, 1     =>  %k = iota {axis = 0}
//   %z = cumulative_sum of zeros                               =>  %z = constant {value = 0}
//   %p = embedding %table, %k        %table: iota along rows   =>  %p = iota
#include <llvm/ADT/STLExtras.h>

#include <numeric>

#include "ir/op_roles.h"
#include "ir/term_builder.h"
#include "passes/passes.h"
#include "passes/rewrite_graph.h"

namespace sinter {
namespace {

/// The op computes integers or truth values, and not from places alone already.
bool may_fold(const Op& op) {
  if (!is_integer(op.type.dtype) && op.type.dtype != DType::i1) return false;
  switch (op_class(op)) {
    case OpClass::leaf:
    case OpClass::generator:
    case OpClass::view:
      return false;
    default:
      return !writes_state(op);
  }
}

/// A sum of few positions: no more work than what it replaces. `made_of_generators`: that is one
/// op.
bool is_short(const PositionTerms& terms, const Term& term, bool made_of_generators) {
  const bool sum = llvm::all_of(parts_of(term), [&](const TermPart& part) {
    return terms[part.node].kind == TermNode::Kind::position;
  });
  return sum && (terms.node_of(term) || (term.terms().size() <= 2 && !made_of_generators));
}

bool is_made_of_generators(const Graph& graph, const Op& op) {
  return llvm::all_of(op.operands, [&](ValueId operand) {
    return op_class(graph[root_of(graph, operand)]) == OpClass::generator;
  });
}

/// The value that stands for `id` of the builder's graph, which has just been added.
ValueId folded(Builder& b, ValueId id) {
  const Op op = b.graph()[id];
  if (!may_fold(op)) return id;
  PositionTerms terms(b.graph(), op.type.dims, b.symbols());
  const Term term = terms.read(id, identity_map(op.type.rank()));
  const DType dtype = op.type.dtype;
  ValueId value;
  if (is_constant(term)) {
    value = b.constant(static_cast<double>(constant_of(term)), dtype, op.type.dims);
  } else if (dtype != DType::i1 && is_short(terms, term, is_made_of_generators(b.graph(), op))) {
    std::vector<uint32_t> axes(op.type.rank());
    std::iota(axes.begin(), axes.end(), 0);
    const Graph& graph = b.graph();
    if (op.kind == OpKind::cast && graph[op.operands[0]].kind == OpKind::iota) return id;
    value = b.cast(TermBuilder(
                       b, terms, axes, [](ValueId same) { return same; }, true)
                       .build(term),
                   dtype);
  } else {
    return id;
  }
  if (b.graph()[value].type != op.type) return id;
  b.graph()[id].name += ".unfolded";
  b.graph()[value].name = op.name;
  return value;
}

}  // namespace

bool fold_positions(Module& module) {
  return rewrite_graphs(module, may_fold,
                        [](const Graph&, Builder& builder, GraphRewriter& rewriter) {
                          bool found = false;
                          rewriter.rewrite([&](ValueId, Op op) {
                            const ValueId added = rewriter.add(std::move(op));
                            const ValueId value = folded(builder, added);
                            found = found || value != added;
                            return value;
                          });
                          return found;
                        });
}

}  // namespace sinter
