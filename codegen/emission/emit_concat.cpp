// A concat is a branch on the coordinate along its axis; only the part that is read is computed.
//
//   float v7[8];                 where all elements of a chunk lie in one part
//   if (a1 < 64) {
//     ... loads of the part
//     for (e) v7[e] = ...
//   } else { ... }
//
// and elsewhere the same for one element, inside the loop over e. There is no branch where one
// formula computes all parts (emit_choice.cpp), as it does both halves of rotated heads and whole
// tensors side by side: only what it loads is chosen. Chunks that hold elements of several parts
// get a branch of their own, in which an element's part is chosen without branches where that is
// possible:
//
//   if (a2 < 24) {
//     for (e) v7[e] = ... load(x1 + (a2 + e < 10 ? a2 + e : a2 + e - 10)) ...
//   } else {
//     load_chunk(v8, x0 + a2);
//     for (e) v7[e] = v8[e];
//   }
#include <algorithm>

#include "codegen/emission/emit_scalar.h"
#include "codegen/emission/emit_value.h"
#include "ir/integers.h"

namespace sinter {
namespace {

// Limit of the parts and formulas of a mixed segment, which computes all of them for every element.
constexpr int kMaxMixedFormulas = 32;

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

/// A branch of the text, for the parts `first` to `last` of the axis from `begin` to `end`. Mixed:
/// chunks may hold elements of several of them. Not mixed: each chunk lies in one, and if there are
/// several, one formula serves them all.
struct Segment {
  size_t first, last;
  int64_t begin, end;
  bool mixed = false;
  int64_t size() const { return end - begin; }
};
using Segments = llvm::SmallVector<Segment, 4>;

Segments branch_parts(llvm::ArrayRef<Part> parts) {
  Segments segments;
  for (size_t k = 0; k < parts.size(); ++k)
    segments.push_back({k, k, parts[k].begin, parts[k].end});
  return segments;
}

/// Neighbours become one segment where `joins` says so.
template <typename Joins>
void join_neighbours(Segments& segments, const Joins& joins) {
  for (size_t k = 0; k + 1 < segments.size();) {
    Segment& a = segments[k];
    const Segment& b = segments[k + 1];
    if (!joins(a, b)) {
      ++k;
      continue;
    }
    a = {a.first, b.last, a.begin, b.end, a.mixed || b.mixed};
    segments.erase(segments.begin() + k + 1);
    if (k > 0) --k;
  }
}

/// Segments of whole chunks, as short as can be.
Segments branch_chunks(llvm::ArrayRef<Part> parts) {
  Segments segments;
  int64_t begin = 0;
  for (size_t k = 0; k < parts.size(); ++k) {
    const int64_t end = parts[k].end;
    if (begin > parts[k].begin) segments.back().last = k;  // a chunk begun by other parts
    const int64_t own = k + 1 == parts.size() ? end : end / kChunkElements * kChunkElements;
    if (begin < own) {
      segments.push_back({k, k, begin, own});
      begin = own;
    }
    if (begin < end) {
      segments.push_back({k, k, begin, ceil_div(end, kChunkElements) * kChunkElements, true});
      begin = segments.back().end;
    }
  }
  return segments;
}

}  // namespace

ValueCode ValueEmitter::concat(ValueId id, const IndexMap& coords, const std::string& key) {
  const Op& op = form_.graph[id];
  const auto axis = static_cast<size_t>(op.attrs.get<int64_t>(AttrName::axis));
  const auto parts = parts_of(form_.graph, op);
  if (parts.empty()) return {literal_code(0, op.type.dtype)};  // no element is ever read
  const IndexExpr along = coords[axis];
  const auto inside = [&](const Part& part) {
    Alternative local{part.value, coords, 0, {}};
    const IndexExpr position = along + IndexExpr(SymExpr(-part.begin));
    local.position = space_.add_alias(position, Dim(part.end - part.begin));
    local.coords[axis] = IndexExpr::variable(local.position);
    return local;
  };

  // Coordinates that lie in one part, whatever the loop variables.
  const IndexExpr flat = space_.lower(along);
  const auto largest = flat.largest(space_.extents());
  const SymExpr& least = flat.constant();
  for (const Part& part : parts) {
    if (largest && largest->is_constant() && largest->constant() < part.end &&
        least.is_constant() && least.constant() >= part.begin)
      return value(part.value, inside(part).coords);
  }
  if (parts.size() == 1) return value(parts[0].value, inside(parts[0]).coords);

  const Level level = space_.level(coords), condition = space_.level(along);
  const bool in_chunk =
      level == Level::element && !single_ && current_->place(Level::chunk).level == Level::chunk;
  Segments segments = branch_parts(parts);
  bool chunked = in_chunk && condition < Level::element;
  if (in_chunk && !chunked && space_.contiguous(along, kChunkElements)) {
    const auto is_short = [&](size_t first, size_t last) {
      int formulas = 0;
      for (size_t k = first; k <= last; ++k) formulas += 1 + count_formulas(parts[k].value);
      return formulas <= kMaxMixedFormulas;
    };
    Segments chunks = branch_chunks(parts);
    chunked = llvm::all_of(chunks,
                           [&](const Segment& s) { return !s.mixed || is_short(s.first, s.last); });
    // Mixed neighbours join, and a part's own chunks join mixed ones that hold at least twice as
    // many elements: the threads of a warp then take one branch less.
    join_neighbours(chunks, [&](const Segment& a, const Segment& b) {
      return ((a.mixed && (b.mixed || a.size() >= 2 * b.size())) ||
              (b.mixed && b.size() >= 2 * a.size())) &&
             is_short(a.first, b.last);
    });
    if (chunked) segments = std::move(chunks);
  }
  // A branch that the row alone decides is the same for a whole warp: nothing is gained there.
  if (chunked && condition != Level::row)
    join_neighbours(segments, [&](const Segment& a, const Segment& b) {
      return !a.mixed && !b.mixed && have_one_formula(parts[a.last].value, parts[b.first].value);
    });
  const auto compute_segment = [&](const Segment& segment) {
    if (segment.first == segment.last)
      return value(parts[segment.first].value, inside(parts[segment.first]).coords);
    Alternatives alternatives;
    for (size_t k = segment.first; k <= segment.last; ++k) {
      alternatives.push_back(inside(parts[k]));
      alternatives.back().not_behind =
          fmt::format("{} < {}", space_.code(along, !segment.mixed), parts[k].end);
    }
    return choose(std::move(alternatives), !segment.mixed);
  };
  if (chunked && !kept_ && segments.size() == 1 && !segments[0].mixed)
    return compute_segment(segments[0]);

  CodeScope& home = current_->place(chunked ? Level::chunk : level);
  CodeScope* const reader = current_;
  ValueCode target;
  if (const KeptValue* kept = kept_here(key, home, level, op.type.dtype)) {
    target = kept_element(*kept);
  } else if (chunked) {
    target = ValueCode::in_array(new_chunk(op.type.dtype, home));
  } else {
    target = {fresh()};
    home.line("{} {};", register_type(op.type.dtype), target.text);
  }
  home.values[key] = target;

  std::string branches;
  for (const Segment& segment : segments) {
    // Values that depend on the row alone may move out: they are valid whichever branch is taken.
    CodeScope branch{
        .parent = &home, .level = home.level, .condition = std::min(condition, Level::chunk)};
    CodeScope inner{.parent = &branch, .level = Level::element};
    current_ = chunked ? &inner : &branch;
    current_->line("{} = {};", target.text, compute_segment(segment).text);
    if (chunked) branch.text += element_loop(inner.text);
    const bool last = &segment == &segments.back();
    if (last && segments.size() > 1) branches += "{\n";
    if (!last)
      branches += fmt::format("if ({} < {}) {{\n", space_.code(along, chunked), segment.end);
    branches += segments.size() == 1 ? branch.text : indented(branch.text);
    if (segments.size() > 1) branches += last ? "}\n" : "} else ";
  }
  current_ = reader;
  home.text += branches;
  return target;
}

}  // namespace sinter
