// A concat is a branch on the coordinate along its axis; only the part that is read is computed.
//
//   float v7[8];                 where all elements of a chunk lie in one part
//   if (a1 < 64) {
//     ... loads of the part
//     for (e) v7[e] = ...
//   } else { ... }
//
// and elsewhere the same for one element, inside the loop over e. Chunks that hold elements of
// several parts get a branch of their own, in which an element's part is chosen without branches
// where that is possible (emit_choice.cpp):
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

constexpr int64_t kChunk = 8;

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

/// What a branch computes: one part, or the chunks that hold elements of several.
struct Segment {
  size_t first, last;  // parts
  int64_t begin, end;
  bool is_mixed() const { return first < last; }
  int64_t size() const { return end - begin; }
};

llvm::SmallVector<Segment, 4> branch_parts(llvm::ArrayRef<Part> parts) {
  llvm::SmallVector<Segment, 4> segments;
  for (size_t k = 0; k < parts.size(); ++k)
    segments.push_back({k, k, parts[k].begin, parts[k].end});
  return segments;
}

/// Segments of whole chunks. A part's own chunks join mixed ones that are twice as many: the
/// threads of a warp then take one branch less.
llvm::SmallVector<Segment, 4> branch_chunks(llvm::ArrayRef<Part> parts) {
  llvm::SmallVector<Segment, 4> segments;
  int64_t begin = 0;
  for (size_t k = 0; k < parts.size(); ++k) {
    const int64_t end = parts[k].end;
    if (begin > parts[k].begin) segments.back().last = k;  // a chunk begun by other parts
    const int64_t own = k + 1 == parts.size() ? end : end / kChunk * kChunk;
    if (begin < own) {
      segments.push_back({k, k, begin, own});
      begin = own;
    }
    if (begin < end) {
      segments.push_back({k, k, begin, ceil_div(end, kChunk) * kChunk});
      begin = segments.back().end;
    }
  }
  const auto joins = [](const Segment& mixed, const Segment& other) {
    return mixed.is_mixed() && (other.is_mixed() || mixed.size() >= 2 * other.size());
  };
  for (size_t k = 0; k + 1 < segments.size();) {
    Segment& a = segments[k];
    const Segment& b = segments[k + 1];
    if (!joins(a, b) && !joins(b, a)) {
      ++k;
      continue;
    }
    a = {a.first, b.last, a.begin, b.end};
    segments.erase(segments.begin() + k + 1);
    if (k > 0) --k;
  }
  return segments;
}

}  // namespace

std::string ValueEmitter::concat(ValueId id, const IndexMap& coords, const std::string& key) {
  const Op& op = form_.graph[id];
  const auto axis = static_cast<size_t>(op.attrs.get<int64_t>(AttrName::axis));
  const auto parts = parts_of(form_.graph, op);
  if (parts.empty()) return literal_code(0, op.type.dtype);  // no element is ever read
  const IndexExpr along = coords[axis];
  // The coordinates in a part, and the loop variable in them that is the position in it.
  const auto inside = [&](const Part& part) {
    IndexMap local = coords;
    const IndexExpr position = along + IndexExpr(SymExpr(-part.begin));
    const uint32_t variable = space_.add_alias(position, Dim(part.end - part.begin));
    local[axis] = IndexExpr::variable(variable);
    return std::pair(local, variable);
  };

  // Coordinates that lie in one part, whatever the loop variables.
  const IndexExpr flat = space_.lower(along);
  const auto largest = flat.largest(space_.extents());
  const SymExpr& least = flat.constant();
  for (const Part& part : parts) {
    if (largest && largest->is_constant() && largest->constant() < part.end &&
        least.is_constant() && least.constant() >= part.begin)
      return value(part.value, inside(part).first);
  }
  if (parts.size() == 1) return value(parts[0].value, inside(parts[0]).first);

  const Level level = space_.level(coords), condition = space_.level(along);
  const bool in_chunk =
      level == Level::element && !single_ && current_->place(Level::chunk).level == Level::chunk;
  llvm::SmallVector<Segment, 4> segments = branch_parts(parts);
  bool chunked = in_chunk && condition < Level::element;
  if (in_chunk && !chunked && space_.contiguous(along, kChunk)) {
    const auto can_choose_all = [&] {
      return llvm::all_of(parts, [&](const Part& part) { return can_choose(part.value); });
    };
    llvm::SmallVector<Segment, 4> chunks = branch_chunks(parts);
    chunked =
        llvm::none_of(chunks, [](const Segment& s) { return s.is_mixed(); }) || can_choose_all();
    if (chunked) segments = std::move(chunks);
  }

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
  for (const Segment& segment : segments) {
    // What changes with the row alone can be computed whichever branch an element takes.
    CodeScope branch{&home, home.level, std::min(condition, Level::chunk), {}, {}};
    CodeScope inner{&branch, Level::element, {}, {}, {}};
    current_ = chunked ? &inner : &branch;
    std::string result;
    if (segment.is_mixed()) {
      Alternatives alternatives;
      for (size_t k = segment.first; k <= segment.last; ++k) {
        const auto [local, position] = inside(parts[k]);
        alternatives.push_back({parts[k].value, local, position,
                                fmt::format("{} < {}", space_.code(along), parts[k].end)});
      }
      result = choose(std::move(alternatives));
    } else {
      result = value(parts[segment.first].value, inside(parts[segment.first]).first);
    }
    current_->line("{} = {};", target, result);
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
