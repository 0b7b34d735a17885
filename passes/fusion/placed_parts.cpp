// A concatenation of values that kernels can store anywhere is no kernel: each part is placed where
// the whole value is, by the kernel that computes it. So are the gradients of queries, keys and
// values, which the next product reads as one matrix:
//
//   %g = concat %q, %k, %v {axis = 2} : [B, N, 3 * D]
//                                             =>
//   %a = place %q {axis = 2, begin = 0, size = 3 * D}
//   %b = place %k, %a {axis = 2, begin = D, size = 3 * D}
//   %g = place %v, %b {axis = 2, begin = 2 * D, size = 3 * D}
//
// Parts that one kernel computes follow one another, so that no other kernel comes between them.
#include <llvm/ADT/STLExtras.h>

#include "ir/in_place.h"
#include "kernels/registry.h"
#include "passes/passes.h"
#include "passes/rewrite_graph.h"

namespace sinter {
namespace {

/// A part of a concatenation, from `begin` to `end` along its axis.
struct Part {
  ValueId value;   // the operand
  ValueId source;  // the result of a kernel that it is a reshape of
  int64_t begin = 0, end = 0;
  size_t kernel = 0;  // sources of one number share a kernel
};
using Parts = llvm::SmallVector<Part, 4>;

/// The parts in an order in which each part touches the parts before it and a kernel's parts are
/// consecutive, kernels with fewer parts first; empty if there is no such order.
Parts in_order(Parts parts) {
  const auto rank = [parts](const Part& part) {
    const auto shares = [&](const Part& other) { return other.kernel == part.kernel; };
    return std::pair(llvm::count_if(parts, shares), part.kernel);
  };
  llvm::stable_sort(parts, [&](const Part& a, const Part& b) { return rank(a) < rank(b); });
  for (size_t i = 1; i < parts.size(); ++i) {
    const auto before = llvm::ArrayRef(parts).take_front(i);
    const auto touches = [&](const Part& part) {
      return rank(part) == rank(parts[i]) && llvm::any_of(before, [&](const Part& other) {
               return part.begin == other.end || part.end == other.begin;
             });
    };
    const auto next = std::find_if(parts.begin() + i, parts.end(), touches);
    if (next == parts.end()) return {};
    std::rotate(parts.begin() + i, next, next + 1);
  }
  return parts;
}

class PlacedParts : RewriteRule {
 public:
  PlacedParts(const Graph& from, Builder& builder, GraphRewriter& rewriter)
      : RewriteRule(from, builder, rewriter), readers_(readers_of(from)) {}

  std::optional<ValueId> replaced(ValueId id, const Op& op) {
    const Parts parts = in_order(parts_of(from_[id]));
    if (parts.empty()) return std::nullopt;
    const int64_t axis = op.attrs.get<int64_t>(AttrName::axis);
    ValueId placed;
    for (const Part& part : parts) {
      llvm::SmallVector<ValueId, 2> operands = {rewriter_[part.value]};
      if (placed.valid()) operands.push_back(placed);
      const bool is_last = &part == &parts.back();
      placed = builder_.op(OpKind::place, operands,
                           Attributes()
                               .set(AttrName::axis, axis)
                               .set(AttrName::begin, part.begin)
                               .set(AttrName::size, op.type.dims[static_cast<size_t>(axis)]),
                           is_last ? op.name : from_[part.source].name + ".placed");
    }
    return placed;
  }

 private:
  /// `value`, a view or a cast, is read for sums of blocks of rows alone, which the kernel of the
  /// rows stores.
  bool is_summed(ValueId value) const {
    while (from_[value].kind == OpKind::cast || op_class(from_[value]) == OpClass::view) {
      const auto& readers = readers_[value.index];
      if (readers.size() != 1 || readers[0] == value) return false;  // itself: an output
      value = readers[0];
      if (const auto sums = as_block_sums(from_, value)) {
        const auto stored = side_result(from_, from_[sums->source], SideKind::block_sums);
        return stored && stored->size == sums->size;
      }
    }
    return false;
  }

  /// The op whose result a part is, with other axes, where no other kernel reads it and its own can
  /// store it anywhere; an invalid id where there is none.
  ValueId placed_source(ValueId part) const {
    const ValueId source = same_elements(from_, part);
    if (!side_result(from_, from_[source], SideKind::placed_value)) return {};
    for (;; part = from_[part].operands[0]) {
      const auto reads_memory = [&](ValueId reader) { return !is_summed(reader); };
      if (llvm::count_if(readers_[part.index], reads_memory) != 1) return {};
      if (part == source) return source;
    }
  }

  bool share_a_kernel(ValueId a, ValueId b) const {
    const KernelFamily& family = *anchored_by(from_[a]);
    return anchored_by(from_[b]) == &family &&
           (is_companion(family, from_[a], from_[b]) || is_companion(family, from_[b], from_[a]));
  }

  /// The parts of a concatenation, all of which can be placed; else empty.
  Parts parts_of(const Op& concat) const {
    if (concat.kind != OpKind::concat || concat.operands.size() < 2) return {};
    const auto axis = static_cast<size_t>(concat.attrs.get<int64_t>(AttrName::axis));
    if (!llvm::all_of(DimsRef(concat.type.dims).drop_front(axis),
                      [](Dim dim) { return dim.is_constant() && dim.constant() > 0; }))
      return {};
    Parts parts;
    int64_t begin = 0;
    for (ValueId value : concat.operands) {
      const int64_t end = begin + from_[value].type.dims[axis].constant();
      const ValueId source = placed_source(value);
      if (!source.valid() || begin == end) return {};
      Part part{value, source, begin, end, parts.size()};
      for (const Part& other : parts)
        if (share_a_kernel(other.source, source)) part.kernel = other.kernel;
      parts.push_back(part);
      begin = end;
    }
    return parts;
  }

  std::vector<llvm::SmallVector<ValueId, 2>> readers_;
};

}  // namespace

bool placed_parts(Module& module) { return replace_ops<PlacedParts>(module, OpKind::concat); }

}  // namespace sinter
