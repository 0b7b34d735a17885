// A concat is a branch on the coordinate along its axis; only the part that is read is computed.
//
//   float v7[8];                 where all elements of a chunk lie in one part
//   if (a1 < 64) {
//     ... loads of the part
//     for (e) v7[e] = ...
//   } else { ... }
//
// and elsewhere the same for one element, inside the loop over e.
#include <algorithm>

#include "codegen/emission/emit_scalar.h"
#include "codegen/emission/emit_value.h"

namespace sinter {
namespace {

struct Part {
  ValueId value;
  int64_t begin, end;
};

llvm::SmallVector<Part, 4> parts_of(const Graph& graph, const Op& op) {
  const auto axis = static_cast<size_t>(op.attrs.get<int64_t>(AttrName::axis));
  llvm::SmallVector<Part, 4> parts;
  int64_t begin = 0;
  for (ValueId operand : op.operands) {
    const int64_t extent = graph[operand].type.dims[axis].constant();
    if (extent > 0) parts.push_back({operand, begin, begin + extent});
    begin += extent;
  }
  return parts;
}

}  // namespace

std::string ValueEmitter::concat(ValueId id, const IndexMap& coords, const std::string& key) {
  const Op& op = form_.graph[id];
  const auto axis = static_cast<size_t>(op.attrs.get<int64_t>(AttrName::axis));
  const auto parts = parts_of(form_.graph, op);
  if (parts.empty()) return literal_code(0, op.type.dtype);  // no element is ever read
  const IndexExpr along = coords[axis];
  const auto inside = [&](const Part& part) {
    IndexMap local = coords;
    const IndexExpr position = along + IndexExpr(SymExpr(-part.begin));
    local[axis] = IndexExpr::variable(space_.add_alias(position, Dim(part.end - part.begin)));
    return local;
  };

  // Coordinates that lie in one part, whatever the loop variables.
  const IndexExpr flat = space_.lower(along);
  const auto largest = flat.largest(space_.extents());
  const SymExpr& least = flat.constant();
  for (const Part& part : parts) {
    if (largest && largest->is_constant() && largest->constant() < part.end &&
        least.is_constant() && least.constant() >= part.begin)
      return value(part.value, inside(part));
  }
  if (parts.size() == 1) return value(parts[0].value, inside(parts[0]));

  const Level level = space_.level(coords), condition = space_.level(along);
  const bool whole_chunks =
      condition < Level::element ||
      (space_.contiguous(along, 8) &&
       llvm::all_of(parts, [](const Part& part) { return part.begin % 8 == 0; }));
  const bool chunked = level == Level::element && whole_chunks && !single_ &&
                       current_->place(Level::chunk).level == Level::chunk;

  CodeScope& home = current_->place(chunked ? Level::chunk : level);
  CodeScope* const reader = current_;
  std::string target;
  if (const KeptValue* kept = kept_here(key, home, level, op.type.dtype)) {
    target = kept_element(*kept);
  } else if (chunked) {
    target = new_chunk(op.type.dtype, home) + "[e]";
  } else {
    target = fresh();
    home.line("{} {};", register_type(op.type.dtype), target);
  }
  home.names[key] = target;

  std::string branches;
  for (const Part& part : parts) {
    // What changes with the row alone can be computed whichever part an element lies in.
    CodeScope branch{&home, home.level, std::min(condition, Level::chunk), {}, {}};
    CodeScope inner{&branch, Level::element, {}, {}, {}};
    current_ = chunked ? &inner : &branch;
    current_->line("{} = {};", target, value(part.value, inside(part)));
    if (chunked) branch.text += element_loop(inner.text);
    if (&part != &parts.back())
      branches += fmt::format("if ({} < {}) {{\n", space_.code(along, chunked), part.end);
    else
      branches += "{\n";
    branches += indented(branch.text) + (&part != &parts.back() ? "} else " : "}\n");
  }
  current_ = reader;
  home.text += branches;
  return target;
}

}  // namespace sinter
