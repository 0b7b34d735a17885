// Parts of a concat without branches.
//
// Where the parts' formulas are alike, one formula is computed whose loads are of the element's own
// part: both halves of rotated heads, for one, or tensors side by side, whose address is chosen. A
// thread's loads of several rows are under way together then, which a branch around each would not
// allow. In chunks that hold elements of several parts which
// are not alike, every formula is computed, and a result is chosen. A part's formula is then
// computed for elements of other parts too: its loads stay inside their tensors, and what it makes
// of them is not used.
#include <algorithm>
#include <utility>

#include "codegen/emission/emit_scalar.h"
#include "codegen/emission/emit_value.h"
#include "ir/cheap_ops.h"

namespace sinter {
namespace {

// More than any kernel has.
constexpr int kTooMany = 1 << 20;

/// Made of no loaded element: a constant, a position, a reduction's result.
bool is_number(const Op& op) {
  return op.kind == OpKind::constant || op.kind == OpKind::iota || op_class(op) == OpClass::reduce;
}

/// Whether one formula, its operands chosen, can stand for both. An op may differ from the other's:
/// then its result is chosen.
bool are_alike(const Graph& graph, ValueId a, ValueId b) {
  const Op &x = graph[a], &y = graph[b];
  const bool formulas = op_class(x) == OpClass::elementwise && op_class(y) == OpClass::elementwise;
  if (x.kind == OpKind::input || y.kind == OpKind::input)
    return x.kind == y.kind && x.type.dtype == y.type.dtype;
  if (is_number(x) || is_number(y) || (x.kind != y.kind && !formulas)) return false;
  return x.type.dtype == y.type.dtype &&
         std::equal(
             x.operands.begin(), x.operands.end(), y.operands.begin(), y.operands.end(),
             [&](ValueId p, ValueId q) { return graph[p].type.dtype == graph[q].type.dtype; });
}

bool mentions(const IndexExpr& e, uint32_t variable) {
  return llvm::any_of(e.terms(), [&](const IndexExpr::Term& term) {
    return term.atom.kind == IndexExpr::Atom::Kind::variable
               ? term.atom.variable == variable
               : mentions(*term.atom.operand, variable);
  });
}

bool is_viewed(const Op& op) { return op_class(op) == OpClass::view || op.kind == OpKind::copy; }

}  // namespace

int ValueEmitter::count_formulas(ValueId id) const {
  const Op& op = form_.graph[id];
  if (op.kind == OpKind::input || is_number(op)) return 0;
  if (!is_by_element(op) && !is_viewed(op)) return kTooMany;
  int count = is_by_element(op);
  for (ValueId operand : op.operands)
    if (count < kTooMany) count += count_formulas(operand);
  return std::min(count, kTooMany);
}

bool ValueEmitter::have_one_formula(ValueId a, ValueId b) const {
  const auto viewed = [&](ValueId id) {
    while (is_viewed(form_.graph[id])) id = form_.graph[id].operands[0];
    return id;
  };
  a = viewed(a), b = viewed(b);
  const Op &x = form_.graph[a], &y = form_.graph[b];
  if (!are_alike(form_.graph, a, b)) return false;
  if (x.kind == OpKind::input) return true;
  if (!is_by_element(x)) return false;
  for (size_t k = 0; k < x.operands.size(); ++k)
    if (!have_one_formula(x.operands[k], y.operands[k])) return false;
  return true;
}

/// Coordinates that are in the part's tensor for every element that the part is computed for; an
/// element of another part gets the coordinates of some element inside the tensor.
IndexMap ValueEmitter::clamped(const Alternative& part) {
  IndexMap coords = part.coords;
  const DimsRef dims = form_.graph[part.value].type.dims;
  for (size_t k = 0; k < coords.size(); ++k) {
    if (!mentions(coords[k], part.position)) continue;
    const IndexExpr flat = space_.lower(coords[k]);
    const SymExpr& least = flat.constant();
    const auto spread = (flat + IndexExpr(SymExpr(0) - least)).largest(space_.extents());
    // Only affine coordinates have known bounds: C++ quotients round towards zero, not down.
    const bool known = flat.is_affine() && spread && spread->is_constant() && least.is_constant() &&
                       dims[k].is_constant();
    const bool low = part.before && !(known && least.constant() >= 0);
    const bool high =
        part.behind && !(known && least.constant() + spread->constant() < dims[k].constant());
    std::string code = space_.code(flat);
    if (low) code = fmt::format("at_least_zero({})", code);
    if (high)
      code = fmt::format("at_most({}, {})", code, space_.size_code(SymExpr(dims[k]) + SymExpr(-1)));
    if (low || high) coords[k] = loaded_row(code, dims[k], Level::element);
  }
  return coords;
}

ValueCode ValueEmitter::choose_load(llvm::ArrayRef<Alternative> parts, bool whole) {
  const ValueId id = parts[0].value;
  const bool one_tensor =
      llvm::all_of(parts, [&](const Alternative& part) { return part.value == id; });
  llvm::SmallVector<IndexMap, 4> coords;
  llvm::SmallVector<IndexExpr, 4> places;
  for (const Alternative& part : parts) {
    coords.push_back(clamped(part));
    places.push_back(space_.lower(linearize(form_.graph[part.value].type.dims, coords.back())));
  }
  if (one_tensor && llvm::all_equal(places)) return value(id, coords[0]);

  // The terms that all places share are added outside the choice.
  const DType dtype = form_.graph[id].type.dtype;
  whole &= llvm::all_of(
      places, [&](const IndexExpr& e) { return space_.contiguous(e, chunk_alignment(dtype)); });
  IndexExpr common;
  for (const IndexExpr::Term& term : places[0].terms())
    if (llvm::all_of(places,
                     [&](const IndexExpr& e) { return llvm::is_contained(e.terms(), term); }))
      common += IndexExpr::from_atom(term.atom) * term.coefficient;
  /// One of the parts' codes, by the part that an element is of.
  const auto chosen = [&](auto&& code_of) {
    std::string text;
    for (size_t k = parts.size(); k-- > 0;) {
      const std::string code = code_of(k);
      text = text.empty() ? code : fmt::format("({} ? {} : {})", parts[k].not_behind, code, text);
    }
    return text;
  };
  std::string at = llvm::all_equal(places) ? space_.code(places[0], whole) : chosen([&](size_t k) {
    return space_.code(places[k] + common * SymExpr(-1), whole);
  });
  if (!common.terms().empty() && !llvm::all_equal(places))
    at = space_.code(common, whole) + " + " + at;
  const auto tensor = [&](size_t k) { return fmt::format("x{}", input_number(parts[k].value)); };
  const std::string from = one_tensor ? tensor(0) : chosen(tensor);
  if (!whole) {
    loads_single_ = true;
    return choose_code(dtype, fmt::format("load({} + {})", from, at));
  }
  const std::string key = fmt::format("chosen chunk of {} + {}", from, at);
  if (const ValueCode* known = current_->find(&CodeScope::values, key)) return *known;
  CodeScope& chunk = current_->place(Level::chunk);
  const std::string name = new_chunk(dtype, chunk);
  chunk.line("load_chunk({}, {} + {}{});", name, from, at, tail_ ? ", valid" : "");
  return chunk.values[key] = ValueCode::in_array(name);
}

/// An element's value by its code, once where a scope needs it more often.
ValueCode ValueEmitter::choose_code(DType dtype, const std::string& code) {
  const std::string key = "chosen " + code;
  const ValueCode* known = current_->find(&CodeScope::values, key);
  return known ? *known : define(key, dtype, Level::element, code);
}

ValueCode ValueEmitter::choose(Alternatives parts, bool whole) {
  for (Alternative& part : parts)
    for (const Op* op = &form_.graph[part.value]; is_viewed(*op); op = &form_.graph[part.value]) {
      if (op->kind != OpKind::copy) part.coords = view_coords(part.value, part.coords);
      part.value = op->operands[0];
    }

  size_t alike = 1;
  while (alike < parts.size() && are_alike(form_.graph, parts[0].value, parts[alike].value))
    ++alike;
  if (alike < parts.size()) {
    Alternatives others(parts.begin() + alike, parts.end());
    parts.truncate(alike);
    parts.back().behind = others.front().before = true;
    const std::string in_first = parts.back().not_behind;
    const std::string one = choose(std::move(parts), whole).text,
                      other = choose(std::move(others), whole).text;
    return {fmt::format("({} ? {} : {})", in_first, one, other)};
  }

  const Op& op = form_.graph[parts[0].value];
  if (op.kind == OpKind::input) return choose_load(parts, whole);
  if (is_number(op)) return value(parts[0].value, parts[0].coords);
  llvm::SmallVector<ValueCode, 3> operands;
  for (size_t k = 0; k < op.operands.size(); ++k) {
    Alternatives read = parts;
    for (Alternative& part : read) {
      const Op& reader = form_.graph[part.value];
      part.coords = operand_coords(reader, reader.operands[k], part.coords);
      part.value = reader.operands[k];
    }
    operands.push_back(choose(std::move(read), whole));
  }
  if (is_free(op)) return operands[0];
  std::string code;
  for (const Alternative& part : llvm::reverse(parts)) {
    const std::string own = formula(form_.graph[part.value], operands);
    if (code.empty())
      code = own;
    else if (code != own)
      code = fmt::format("({} ? {} : {})", part.not_behind, own, code);
  }
  return choose_code(op.type.dtype, is_rounded(op) ? rounded_code(code, op.type.dtype) : code);
}

}  // namespace sinter
