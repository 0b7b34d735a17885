// The same formula, read at another place: a value is computed again for an op that needs one
// element of each row, a slice, or a longer row. Passes that do so are rules of Reread.
//
// An op element by element gives the same bits wherever its element is computed. A rule that reads
// a reduction at another place, or in place of one, says in its header why the sum keeps its bits.
#pragma once

#include <llvm/ADT/STLExtras.h>

#include <map>
#include <set>

#include "ir/builder.h"
#include "ir/cheap_ops.h"
#include "ir/graph_rewriter.h"
#include "ir/op_flops.h"

namespace sinter {

/// The budget of a formula that is computed again: instructions an element
/// (`element_instructions`). The longest formula that models need, the gradient of a loss behind a
/// softcap, takes 53: a tanh of 30, an exponential of 12, and eleven others. An H200 issues 64
/// instructions in about the time in which it moves 11 bytes (`kernels/cost.h`).
inline constexpr int64_t kMaxRereadInstructions = 64;

/// The values that are computed for a value, and the values that these read.
struct Formula {
  std::set<ValueId> computed, read;
  int64_t instructions = 0;  // of an element

  bool fits() const { return instructions <= kMaxRereadInstructions; }
  /// False: the value was there.
  bool compute(const Graph& graph, ValueId id) {
    if (!computed.insert(id).second) return false;
    instructions += element_instructions(graph[id]);
    return true;
  }
};

/// Follows the operands of each op for which computes(id) holds, as long as goes_on(formula).
template <typename Computes, typename GoesOn>
Formula walk_formula(const Graph& graph, ValueId value, Computes&& computes, GoesOn&& goes_on) {
  Formula formula;
  llvm::SmallVector<ValueId, 16> open = {value};
  while (!open.empty() && goes_on(std::as_const(formula))) {
    const ValueId id = open.pop_back_val();
    if (!computes(id))
      formula.read.insert(id);
    else if (formula.compute(graph, id))
      open.append(graph[id].operands);
  }
  return formula;
}
/// The same within the budget.
template <typename Computes>
Formula formula_of(const Graph& graph, ValueId value, Computes&& computes) {
  return walk_formula(graph, value, computes, [](const Formula& so_far) { return so_far.fits(); });
}

/// The extent of an axis that `behind` others follow; 1 in dims that lack it, since they broadcast.
inline Dim extent_before(DimsRef dims, size_t behind) {
  return dims.size() > behind ? dims[dims.size() - 1 - behind] : Dim(1);
}
/// The op's attribute `axis` is that axis.
inline bool is_along(const Op& op, size_t behind) {
  return static_cast<size_t>(op.attrs.get<int64_t>(AttrName::axis)) + 1 + behind == op.type.rank();
}

/// Gives values at a place, for the reader: an op of the old graph, in whose place new ops stand. A
/// rule derives from this class, and has an ordered type `Place`. At a place a value is
/// - whole: the same as elsewhere, so that it is read as it stands,
/// - computed: its op is computed again, of its operands at the place, or
/// - made by the rule, such as a slice of the value.
/// An op that would read a version of a state behind the op that overwrites it is not computed.
template <typename Place>
class Reread {
 public:
  /// `suffix`: of the names of values that are computed again.
  Reread(const Graph& from, Builder& builder, GraphRewriter& rewriter, std::string suffix = {})
      : from_(from), builder_(builder), rewriter_(rewriter), suffix_(std::move(suffix)) {}

  /// The values that at() computes and reads; nullopt: a value is none of the three, or the formula
  /// exceeds the budget. A rule answers for a value alike at all places of one formula.
  std::optional<Formula> formula(ValueId value, const Place& place, ValueId reader) const {
    Formula formula =
        formula_of(from_, value, [&](ValueId id) { return is_computed(id, place, reader); });
    const bool is_there = llvm::all_of(formula.read, [&](ValueId id) {
      return (is_whole(id, place) || makes(id, place)) && rewriter_.may_read(id, reader);
    });
    return is_there && formula.fits() ? std::optional(formula) : std::nullopt;
  }

  /// The value of the new graph; each is made once for a place.
  ValueId at(ValueId value, const Place& place, ValueId reader) {
    if (is_whole(value, place)) return rewriter_[value];
    ValueId& made = made_[{place, value}];
    if (made.valid()) return made;
    if (!is_computed(value, place, reader)) return made = make(value, place);
    const Op& op = from_[value];
    const Place inner = place_of_operands(op, place);
    llvm::SmallVector<ValueId, 3> operands;
    for (ValueId operand : op.operands) operands.push_back(at(operand, inner, reader));
    return made = compute(op, operands, place);
  }

 protected:
  ~Reread() = default;
  virtual bool is_whole(ValueId id, const Place& place) const = 0;
  /// Asked for a value that is not whole: it may be computed again.
  virtual bool computes(ValueId id, const Place&) const { return is_by_element(from_[id]); }
  /// The place at which an op reads its operands to be computed at `place`.
  virtual Place place_of_operands(const Op&, const Place& place) { return place; }
  virtual ValueId compute(const Op& op, llvm::ArrayRef<ValueId> operands, const Place&) {
    return builder_.op(op.kind, operands, op.attrs, op.name + suffix_);
  }
  /// Asked for a value that is neither whole nor computed: make() gives its elements at the place.
  virtual bool makes(ValueId, const Place&) const { return true; }
  virtual ValueId make(ValueId id, const Place&) { SINTER_CHECK(false, "{}", from_[id].name); }

  const Graph& from_;
  Builder& builder_;
  GraphRewriter& rewriter_;

 private:
  bool is_computed(ValueId id, const Place& place, ValueId reader) const {
    return !is_whole(id, place) && computes(id, place) && rewriter_.may_compute(id, reader);
  }

  std::string suffix_;
  std::map<std::pair<Place, ValueId>, ValueId> made_;
};

}  // namespace sinter
