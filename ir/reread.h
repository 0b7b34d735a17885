// The same formula, read at another place: a value is computed again for an op that needs one
// element of each row, a slice, or a longer row. Passes that do so are rules of Reread.
#pragma once

#include <llvm/ADT/STLExtras.h>

#include <map>
#include <set>

#include "ir/builder.h"
#include "ir/cheap_ops.h"
#include "ir/graph_rewriter.h"
#include "ir/state_reads.h"

namespace sinter {

/// The values that are computed for a value, and the values that these read.
struct Formula {
  std::set<ValueId> computed, read;
};

/// Follows the operands of each op for which computes(id) holds; stops behind `max_ops` of them.
template <typename Computes>
Formula formula_of(const Graph& graph, ValueId value, size_t max_ops, Computes&& computes) {
  Formula formula;
  llvm::SmallVector<ValueId, 16> open = {value};
  while (!open.empty() && formula.computed.size() <= max_ops) {
    const ValueId id = open.pop_back_val();
    if (!computes(id))
      formula.read.insert(id);
    else if (formula.computed.insert(id).second)
      open.append(graph[id].operands);
  }
  return formula;
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

  /// The values that at() computes and reads; nullopt: a value is none of the three, or more than
  /// `max_ops` would be computed.
  std::optional<Formula> formula(ValueId value, const Place& place, ValueId reader,
                                 size_t max_ops) const {
    Formula formula = formula_of(from_, value, max_ops,
                                 [&](ValueId id) { return is_computed(id, place, reader); });
    const bool is_there = llvm::all_of(formula.read, [&](ValueId id) {
      return (is_whole(id, place) || makes(id, place)) && !is_overwritten(from_, id, reader);
    });
    return is_there && formula.computed.size() <= max_ops ? std::optional(formula) : std::nullopt;
  }

  /// The value of the new graph; each is made once for a place.
  ValueId at(ValueId value, const Place& place, ValueId reader) {
    if (is_whole(value, place)) return rewriter_[value];
    ValueId& made = made_[{place, value}];
    if (made.valid()) return made;
    if (!is_computed(value, place, reader)) return made = make(value, place);
    const Op& op = from_[value];
    llvm::SmallVector<ValueId, 3> operands;
    for (ValueId operand : op.operands) operands.push_back(at(operand, place, reader));
    return made = builder_.op(op.kind, operands, attrs_at(op, place), op.name + suffix_);
  }

 protected:
  ~Reread() = default;
  virtual bool is_whole(ValueId id, const Place& place) const = 0;
  /// Asked for a value that is not whole: it may be computed again.
  virtual bool computes(ValueId id, const Place&) const { return is_by_element(from_[id]); }
  virtual Attributes attrs_at(const Op& op, const Place&) const { return op.attrs; }
  /// Asked for a value that is neither whole nor computed: make() gives its elements at the place.
  virtual bool makes(ValueId, const Place&) const { return true; }
  virtual ValueId make(ValueId id, const Place&) { SINTER_CHECK(false, "{}", from_[id].name); }

  const Graph& from_;
  Builder& builder_;
  GraphRewriter& rewriter_;

 private:
  bool is_computed(ValueId id, const Place& place, ValueId reader) const {
    return !is_whole(id, place) && computes(id, place) &&
           !reads_overwritten(from_, from_[id], reader);
  }

  std::string suffix_;
  std::map<std::pair<Place, ValueId>, ValueId> made_;
};

}  // namespace sinter
