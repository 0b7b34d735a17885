#include "ir/op_facts.h"

#include <llvm/ADT/STLFunctionalExtras.h>

#include <algorithm>
#include <utility>

#include "ir/decompose.h"
#include "ir/op_roles.h"
#include "ir/row_numbers.h"

namespace sinter {
namespace {

/// `e` with `variable` + `by` in place of `variable`.
IndexExpr shifted(const IndexExpr& e, uint32_t variable, int64_t by) {
  IndexExpr result(e.constant());
  for (const IndexExpr::Term& term : e.terms()) {
    IndexExpr::Atom atom = term.atom;
    IndexExpr value;
    if (atom.kind == IndexExpr::Atom::Kind::variable) {
      value = IndexExpr::variable(atom.variable);
      if (atom.variable == variable) value += IndexExpr(SymExpr(by));
    } else {
      atom.operand = std::make_shared<const IndexExpr>(shifted(*atom.operand, variable, by));
      value = IndexExpr::from_atom(std::move(atom));
    }
    result += value * term.coefficient;
  }
  return result;
}

/// The number of the loop variable that `e` is.
std::optional<uint32_t> as_variable(const IndexExpr& e) {
  if (e.terms().size() != 1 || e.terms()[0].atom.kind != IndexExpr::Atom::Kind::variable)
    return std::nullopt;
  const uint32_t number = e.terms()[0].atom.variable;
  return e == IndexExpr::variable(number) ? std::optional(number) : std::nullopt;
}

/// The part of a loop in which `e` is between `begin` and `end`: of variables, and of their
/// remainders.
std::optional<LoopRange> part_of_loop(const IndexExpr& e, int64_t begin, int64_t end,
                                      DimsRef space) {
  if (const auto variable = as_variable(e); variable && space[*variable].is_constant())
    return LoopRange{*variable, space[*variable].constant(), begin, end};
  if (e.terms().size() != 1 || e.terms()[0].atom.kind != IndexExpr::Atom::Kind::remainder)
    return std::nullopt;
  const IndexExpr::Atom& atom = e.terms()[0].atom;
  const auto variable = as_variable(*atom.operand);
  if (!variable || !atom.divisor.is_constant() || !(e == IndexExpr::from_atom(atom)))
    return std::nullopt;
  return LoopRange{*variable, atom.divisor.constant(), begin, end};
}

/// Pulls a value of a graph of primitives back to the reads of the graph's inputs. `place` says
/// what of a larger graph an input is: it is called for each read with the tightest loop bounds
/// known.
class Puller {
 public:
  using Place = llvm::function_ref<void(Read&)>;
  Puller(const Graph& primitives, llvm::ArrayRef<Symbol> symbols, Place place, OpFacts& facts)
      : primitives_(primitives), symbols_(symbols), place_(place), facts_(facts) {}

  void pull(ValueId id, const IndexMap& coords, const Dims& space);
  /// Reads after a view that keeps the order of elements are given in a loop over the view's
  /// operand, whose axes are the axes of the ops before the view.
  void loop_anew_at_views() { loops_anew_ = true; }

 private:
  void pull_reduce(const Op& op, const IndexMap& coords);
  void pull_runs(const Op& op);
  void pull_concat(const Op& op, const IndexMap& coords, const Dims& space);

  void read(ValueId input, const IndexMap& coords, const Dims& space, bool loaded) {
    facts_.reads.push_back({input, coords, space, loaded, {}});
    place_(facts_.reads.back());
  }

  const Graph& primitives_;
  llvm::ArrayRef<Symbol> symbols_;
  Place place_;
  OpFacts& facts_;
  struct Visit {
    ValueId id;
    IndexMap coords;
    Dims space;
  };
  llvm::SmallVector<Visit, 16> visited_;
  bool loops_anew_ = false;
};

void Puller::pull_reduce(const Op& op, const IndexMap& coords) {
  const auto& axes = op.attrs.get<std::vector<int64_t>>(AttrName::axes);
  const Dims& dims = primitives_[op.operands[0]].type.dims;
  const auto kept = static_cast<uint32_t>(dims.size() - axes.size());
  const bool trailing = axes.front() == static_cast<int64_t>(kept);
  // A row's reduction serves that row: the kept coordinates are the leading loop variables.
  const IndexMap identity = identity_map(dims.size());
  const bool own_row = std::equal(coords.begin(), coords.begin() + kept, identity.begin());
  if (!trailing || !own_row || (facts_.reduces && facts_.kept_axes != kept))
    facts_.kept_axes.reset();
  else if (!facts_.reduces)
    facts_.kept_axes = kept;
  facts_.reduces = true;
  int64_t elements = volume(DimsRef(dims).drop_front(trailing ? kept : 0)).upper_bound(symbols_);
  facts_.reduced_upper_bound = std::max(facts_.reduced_upper_bound, elements);
  pull(op.operands[0], identity, dims);
}

/// The operands are walked by rows, and nothing of the result is there before the last row.
void Puller::pull_runs(const Op& op) {
  const Dims& dims = primitives_[op.operands[0]].type.dims;
  facts_.reduces = facts_.sums_runs = true;
  facts_.kept_axes = static_cast<uint32_t>(dims.size()) - 1;
  facts_.reduced_upper_bound = SymExpr(dims.back()).upper_bound(symbols_);
  for (ValueId operand : op.operands) pull(operand, identity_map(dims.size()), dims);
}

void Puller::pull(ValueId id, const IndexMap& coords, const Dims& space) {
  for (const Visit& visit : visited_)
    if (visit.id == id && visit.coords == coords && visit.space == space) return;
  visited_.push_back({id, coords, space});
  const Op& op = primitives_[id];
  switch (op_class(op)) {
    case OpClass::leaf:
      return read(id, coords, space, false);
    case OpClass::generator:
      return;
    case OpClass::view: {
      const Dims& inner = primitives_[op.operands[0]].type.dims;
      const bool own =
          loops_anew_ && op.kind == OpKind::reshape && !inner.empty() && !space.empty() &&
          inner[0] == space[0] && volume(inner) == volume(space) &&
          linearize(op.type.dims, coords) == linearize(space, identity_map(space.size()));
      return own ? pull(op.operands[0], identity_map(inner.size()), inner)
                 : pull(op.operands[0], through_view(primitives_, id, coords, space), space);
    }
    case OpClass::reduce:
      return pull_reduce(op, coords);
    case OpClass::run_sums:
      return pull_runs(op);
    case OpClass::gather:
      pull(operand_with(op, OperandRole::id), number_coords(op, coords), space);
      return read(root_of(primitives_, operand_with(op, OperandRole::table)), {}, space, true);
    case OpClass::append:
      if (places_part(op)) {
        if (const ValueId base = operand_with(op, OperandRole::base); base.valid())
          read(root_of(primitives_, base), {}, space, true);
        return pull(operand_with(op, OperandRole::update), coords, space);
      }
      read(root_of(primitives_, operand_with(op, OperandRole::state)), {}, space, true);
      pull(operand_with(op, OperandRole::update), coords, space);
      if (writes_rows(op)) pull(operand_with(op, OperandRole::slot), {coords[0]}, space);
      return;
    case OpClass::pointwise:
      if (op.kind == OpKind::concat) return pull_concat(op, coords, space);
      break;
    case OpClass::elementwise:
      break;
    case OpClass::composite:
    case OpClass::contraction:
    case OpClass::anchor:
      SINTER_CHECK(false, "{} does not compute element by element", algorithm_name(op));
  }
  for (ValueId operand : op.operands)
    pull(operand, broadcast_coords(primitives_[operand].type.dims, op.type.dims, coords), space);
}

/// A part is pulled in a loop over its own extent, so that what is known of the range of its
/// coordinates simplifies them; its reads are then told in the loop over the whole.
void Puller::pull_concat(const Op& op, const IndexMap& coords, const Dims& space) {
  const auto axis = static_cast<size_t>(op.attrs.get<int64_t>(AttrName::axis));
  const std::optional<uint32_t> variable = as_variable(coords[axis]);
  int64_t begin = 0;
  for (ValueId operand : op.operands) {
    const Dim extent = primitives_[operand].type.dims[axis];
    const size_t before = facts_.reads.size();
    const auto only = part_of_loop(coords[axis], begin, begin + extent.constant(), space);
    IndexMap part = coords;
    Dims own = space;
    if (variable)
      own[*variable] = extent;
    else if (extent.is(1))
      part[axis] = IndexExpr();
    else
      part[axis] += IndexExpr(SymExpr(-begin));
    visited_.clear();  // the same place in another part's loop is another place
    const bool loops_anew =
        std::exchange(loops_anew_, false);  // what follows tells it in this loop
    pull(operand, part, own);
    loops_anew_ = loops_anew;
    for (Read& read : llvm::drop_begin(facts_.reads, before)) {
      if (read.loaded || read.space != own) continue;
      if (variable) {
        for (IndexExpr& e : read.coords) e = shifted(e, *variable, -begin);
        for (LoopRange& inner : read.only)
          if (inner.variable == *variable) inner.shift += begin;
        read.space = space;
      }
      if (only) read.only.push_back(*only);
    }
    begin += extent.constant();
  }
}

/// Extents of the loop over what the op computes, or reads where that is a sum of runs.
const Dims& loop_of(const Graph& graph, const Op& op) {
  return op_class(op) == OpClass::run_sums ? graph[op.operands[0]].type.dims
                                           : written_type(graph, op).dims;
}

}  // namespace

OpFacts op_facts(const Graph& graph, ValueId id, llvm::ArrayRef<Symbol> symbols) {
  const Op& op = graph[id];
  OpFacts facts;
  facts.dims = loop_of(graph, op);
  if (op_class(op) == OpClass::contraction || op_class(op) == OpClass::anchor) {
    for (size_t i = 0; i < op.operands.size(); ++i) {
      const ValueId operand = op.operands[i], root = root_of(graph, operand);
      const Dims& dims = graph[operand].type.dims;
      if (operand_role(op, i) == OperandRole::row)
        facts.reads.push_back(
            {root, resolve_access(graph, operand, identity_map(dims.size()), dims).coords, dims,
             false});
      else
        facts.reads.push_back({root, {}, {}, true});
    }
    return facts;
  }
  if (op_class(op) == OpClass::reduce)
    facts.columns = column_space(graph[op.operands[0]].type.dims,
                                 op.attrs.get<std::vector<int64_t>>(AttrName::axes));
  Graph primitives;
  Builder builder(primitives, symbols);
  llvm::SmallVector<ValueId, 4> inputs;
  for (ValueId operand : op.operands)
    inputs.push_back(builder.leaf(OpKind::input, graph[operand].type, ""));
  const ValueId result = op_class(op) == OpClass::composite
                             ? decompose(builder, op.kind, inputs, op.attrs)
                             : builder.op(op.kind, inputs, op.attrs);
  const auto place = [&](Read& read) {
    const ValueId operand = op.operands[llvm::find(inputs, read.root) - inputs.begin()];
    read.root = root_of(graph, operand);
    if (!read.loaded) read.coords = resolve_access(graph, operand, read.coords, read.space).coords;
  };
  Puller(primitives, symbols, place, facts)
      .pull(result, identity_map(facts.dims.size()), facts.dims);
  return facts;
}

OpFacts value_facts(const Graph& primitives, ValueId id, llvm::ArrayRef<Symbol> symbols) {
  OpFacts facts;
  const Op& op = primitives[id];
  facts.dims = loop_of(primitives, op);
  Puller puller(
      primitives, symbols, [](Read&) {}, facts);
  puller.loop_anew_at_views();
  puller.pull(id, identity_map(facts.dims.size()), facts.dims);
  return facts;
}

}  // namespace sinter
