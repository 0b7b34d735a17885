// Elementwise values that another elementwise op reads at other places are computed there, so that
// they need no kernel of their own:
//
//   %n = neg %x2   %r = concat %n, %x1     =>   %r = where (position < size of a part),
//                                                    neg of x2 repeated, x1 repeated
//   %f = cast %freq : f32[16]              =>   %f = cast (broadcast of freq to [200, 16])
//   %m = mul %f, %p : f32[200, 16]
//
// So are the parts of a concatenation that have one size, and values that are computed from inputs,
// weights and generators alone, for a larger reader: where nothing else reads them, or they are
// made of generators alone. A cast to a wider type is computed for each larger reader. Views move
// above what is computed. No bit changes: every op is element by element.
#include "ir/reread.h"
#include "ir/sym_expr.h"
#include "ir/verify_graph.h"
#include "passes/passes.h"
#include "passes/rewrite_graph.h"

namespace sinter {
namespace {

constexpr size_t kMaxRecomputedParts = 4;  // of a concatenation: each element chooses among them

/// A place is a view of the value, by its number; 0: as the value stands.
class PartsInPlace : Reread<size_t> {
 public:
  PartsInPlace(const Graph& from, Builder& builder, GraphRewriter& rewriter)
      : Reread(from, builder, rewriter), readers_(readers_of(from)), generated_(from.size()) {
    for (uint32_t i = 0; i < from.size(); ++i) generated_[i] = is_generated(from.ops()[i]);
  }

  std::optional<ValueId> replaced(ValueId id, Op& op) {
    if (op.kind == OpKind::concat && has_part_in_place(id)) return joined(id);
    if (!is_by_element(op) || !widen_operands(id, op)) return std::nullopt;
    return rewriter_.add(std::move(op));
  }

 private:
  // ---- views

  /// A view of what the view `next` is taken of; 0: it is the last one.
  struct View {
    OpKind kind;
    Attributes attrs;
    size_t next;
    friend bool operator==(const View&, const View&) = default;
  };
  /// The same view has one number, so that a value is made once for it, on whatever way it is
  /// found.
  size_t view(OpKind kind, Attributes attrs, size_t next) {
    const View made{kind, std::move(attrs), next};
    const auto known = llvm::find(views_, made);
    if (known == views_.end()) {
      views_.push_back(made);
      return views_.size();
    }
    return static_cast<size_t>(known - views_.begin()) + 1;
  }
  size_t view(OpKind kind, const Dims& dims, size_t next) {
    return view(kind, Attributes().set(AttrName::dims, dims), next);
  }
  ValueId make(ValueId id, const size_t& place) override {
    ValueId x = rewriter_[id];
    for (size_t i = place; i != 0; i = views_[i - 1].next) {
      const auto& [kind, attrs, next] = views_[i - 1];
      x = kind == OpKind::broadcast ? builder_.broadcast(x, attrs.get<Dims>(AttrName::dims))
                                    : builder_.op(kind, {x}, attrs);
    }
    return x;
  }

  // ---- which values are computed again

  bool is_whole(ValueId, const size_t&) const override { return false; }
  bool computes(ValueId id, const size_t&) const override {
    const ValueId root = root_of(from_, id);
    const Op& op = from_[root];
    return is_cheap(op) && (generated_[root.index] || is_widening(op) || only_reader(root).valid());
  }
  size_t place_of_operands(const Op& op, const size_t& place) override {
    return op_class(op) == OpClass::view ? view(op.kind, op.attrs, place)
                                         : view(OpKind::broadcast, op.type.dims, place);
  }
  ValueId compute(const Op& op, llvm::ArrayRef<ValueId> operands, const size_t& place) override {
    return op_class(op) == OpClass::view ? operands[0] : Reread::compute(op, operands, place);
  }

  /// The one op that reads the value, perhaps through views; invalid: there are others.
  ValueId only_reader(ValueId id) const {
    ValueId only;
    for (ValueId reader : readers_[id.index]) {
      const bool is_view = op_class(from_[reader]) == OpClass::view;
      const ValueId one = reader == id ? ValueId() : is_view ? only_reader(reader) : reader;
      if (!one.valid() || (only.valid() && only != one)) return {};
      only = one;
    }
    return only;
  }
  /// A cast that reads fewer bytes than it writes: to compute it twice costs less than to read it.
  bool is_widening(const Op& op) const {
    return op.kind == OpKind::cast &&
           dtype_info(from_[op.operands[0]].type.dtype).bits < dtype_info(op.type.dtype).bits;
  }
  /// Made of generators alone: no reader needs it in memory.
  bool is_generated(const Op& op) const {
    const bool may_be = op_class(op) == OpClass::view || is_cheap(op);
    return op_class(op) == OpClass::generator ||
           (may_be && llvm::all_of(op.operands, [&](ValueId id) { return generated_[id.index]; }));
  }

  // ---- parts of a concatenation

  bool has_part_in_place(ValueId concat) const {
    const Op& op = from_[concat];
    const auto axis = static_cast<size_t>(op.attrs.get<int64_t>(AttrName::axis));
    const auto size = [&](ValueId part) { return from_[part].type.dims[axis]; };
    const size_t parts = op.operands.size();
    return parts >= 2 && parts <= kMaxRecomputedParts && op.type.rank() < kMaxAxes &&
           size(op.operands[0]).is_constant() &&
           llvm::all_of(op.operands,
                        [&](ValueId part) { return size(part) == size(op.operands[0]); }) &&
           llvm::any_of(op.operands, [&](ValueId part) {
             const auto formula = this->formula(part, 0, concat);
             return formula && !formula->computed.empty();
           });
  }

  ValueId joined(ValueId concat) {
    const Op& op = from_[concat];
    const auto axis = static_cast<size_t>(op.attrs.get<int64_t>(AttrName::axis));
    const int64_t parts = static_cast<int64_t>(op.operands.size());
    const int64_t size = from_[op.operands[0]].type.dims[axis].constant();
    const auto part = [&](ValueId id) {
      const size_t place = repeated(from_[id].type.dims, axis, parts);
      return formula(id, place, concat) ? at(id, place, concat) : make(id, place);
    };
    ValueId value = part(op.operands.back());
    for (int64_t i = llvm::all_equal(op.operands) ? 0 : parts - 1; i-- > 0;) {
      const ValueId own = part(op.operands[static_cast<size_t>(i)]);
      const ValueId within =
          builder_.less(builder_.iota(op.type.dims, static_cast<int64_t>(axis)),
                        builder_.constant(static_cast<double>((i + 1) * size), DType::i32));
      value = builder_.op(OpKind::where, {within, own, value});
    }
    builder_.graph()[value].name = op.name;
    return value;
  }

  /// Element i of an axis is element i mod its size of the value.
  size_t repeated(Dims dims, size_t axis, int64_t times) {
    Dims one = dims;
    one.insert(one.begin() + axis, Dim(1));
    Dims apart = one;
    apart[axis] = Dim(times);
    dims[axis] = Dim(times * dims[axis].constant());
    const size_t joined = view(OpKind::reshape, dims, 0);
    return view(OpKind::reshape, one, view(OpKind::broadcast, apart, joined));
  }

  // ---- values that are computed from what the caller gives

  /// True if an operand changed.
  bool widen_operands(ValueId reader, Op& op) {
    bool found = false;
    for (const auto& [made, operand] : llvm::zip(op.operands, from_[reader].operands))
      if (const ValueId wider = widened(operand, reader, op.type.dims); wider.valid())
        made = wider, found = true;
    return found;
  }
  ValueId widened(ValueId operand, ValueId reader, const Dims& dims) {
    const ValueId root = root_of(from_, operand);
    const auto elements = [&](DimsRef of) { return volume(of).upper_bound(builder_.symbols()); };
    const bool is_larger = elements(dims) > elements(from_[root].type.dims);
    if (!is_larger && (!generated_[root.index] || only_reader(root).valid())) return {};
    const auto formula = this->formula(operand, 0, reader);
    if (!formula || formula->computed.empty()) return {};
    const size_t place = view(OpKind::broadcast, dims, 0);
    if (llvm::all_of(formula->read, [&](ValueId read) { return is_given(read); }))
      return at(operand, place, reader);
    return is_widening(from_[root]) ? cast_of(operand, place) : ValueId();
  }
  /// Inputs, weights and generators.
  bool is_given(ValueId id) const {
    const Op& op = from_[root_of(from_, id)];
    return op.kind == OpKind::input || op.kind == OpKind::weight ||
           op_class(op) == OpClass::generator;
  }
  /// A view of a cast, alone: the cast of a view.
  ValueId cast_of(ValueId id, size_t place) {
    const Op& op = from_[id];
    if (op_class(op) == OpClass::view) return cast_of(op.operands[0], place_of_operands(op, place));
    return compute(op, {make(op.operands[0], place)}, place);
  }

  const std::vector<llvm::SmallVector<ValueId, 2>> readers_;
  std::vector<bool> generated_;
  std::vector<View> views_;
};

}  // namespace

bool recompute_parts(Module& module) { return replace_ops<PartsInPlace>(module, is_by_element); }

}  // namespace sinter
