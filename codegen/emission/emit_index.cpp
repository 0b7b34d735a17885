#include "codegen/emission/emit_index.h"

#include <algorithm>

namespace sinter {
namespace {

// Below this, sums of two indices fit an int.
constexpr int64_t kIntBound = int64_t{1} << 30;

/// "/ stride % extent", as far as they do anything.
std::string digit(std::string code, const std::string& stride, const std::string& extent) {
  if (stride != "1") code += " / " + stride;
  if (!extent.empty()) code += " % " + extent;
  return code;
}

}  // namespace

LoopSpace::LoopSpace(const GroupForm& form, llvm::ArrayRef<Symbol> symbols,
                     llvm::ArrayRef<SymbolId> parameters)
    : form_(form), symbols_(symbols), parameters_(parameters) {
  add_rows(form);
  for (const Stage& stage : form.stages) add_stage(stage);
  fixed_count_ = static_cast<uint32_t>(variables_.size());
}

void LoopSpace::add(Dim extent, Variable variable) {
  extents_.push_back(extent);
  variables_.push_back(std::move(variable));
}

uint32_t LoopSpace::add_loaded(std::string code, Dim extent, Level level) {
  add(extent, {level, code, code, {}, {}});
  return static_cast<uint32_t>(variables_.size() - 1);
}

uint32_t LoopSpace::add_alias(IndexExpr value, Dim extent) {
  const Level at = level(value);
  add(extent, {at, {}, {}, {}, std::move(value)});
  return static_cast<uint32_t>(variables_.size() - 1);
}

std::string LoopSpace::narrow(const std::string& name, const SymExpr& bound) const {
  return bound.upper_bound(symbols_) < kIntBound ? "(int)" + name : name;
}

bool LoopSpace::has_int_index(const Stage& stage) const {
  return stage.width.upper_bound(symbols_) < kIntBound;
}

void LoopSpace::add_rows(const GroupForm& form) {
  const SymExpr rows = volume(form.prefix);
  const auto strides = row_major_strides(form.prefix);
  bool outermost = true;
  for (size_t k = 0; k < form.prefix.size(); ++k) {
    const Dim extent = form.prefix[k];
    if (SymExpr(extent) == rows || extent.is(1)) {
      add(extent, {Level::row, kRow, kRow, {}, {}});
      continue;
    }
    const std::string name = fmt::format("r{}", k);
    row_declarations_.push_back(
        {name, fmt::format("const long long {} = {};\n", name,
                           digit(narrow(kRow, rows), size_code(strides[k]),
                                 outermost ? "" : size_code(SymExpr(extent))))});
    add(extent, {Level::row, name, name, name, {}});
    outermost = false;
  }
  row_runs_.push_back({0, static_cast<uint32_t>(form.prefix.size()), rows, kRow, kRow, {}});
}

void LoopSpace::add_stage(const Stage& stage) {
  StageLoop loop;
  loop.first = static_cast<uint32_t>(variables_.size());
  const auto strides = row_major_strides(stage.axes);
  const auto count = static_cast<uint32_t>(stage.axes.size());
  // The innermost axes whose product is a multiple of the chunk: chunks do not cross their border.
  loop.block = count;
  SymExpr block_size = 1;
  while (loop.block > 0 && !divides_by_chunk(block_size))
    block_size = block_size * SymExpr(stage.axes[--loop.block]);
  if (!divides_by_chunk(block_size)) loop.block = 0;

  const std::string type = index_type(stage);
  const auto declare = [&](const std::string& name, const std::string& value) {
    loop.declarations.push_back({name, fmt::format("const {} {} = {};\n", type, name, value)});
  };
  for (uint32_t k = 0; k < loop.block; ++k) {
    const std::string name = fmt::format("a{}", k);
    declare(name,
            digit("i", size_code(strides[k]), k == 0 ? "" : size_code(SymExpr(stage.axes[k]))));
    add(stage.axes[k], {Level::chunk, name, name, name, {}});
  }
  const bool whole = loop.block == 0;
  const bool single = loop.block + 1 == count;
  const std::string base = whole ? "i" : single ? fmt::format("a{}", loop.block) : "u";
  const std::string used = whole ? "" : base;
  if (!whole) declare(base, "i % " + size_code(block_size));
  for (uint32_t k = loop.block; k < count; ++k) {
    Variable axis{Level::element, {}, base, used, {}};
    if (single) {
      axis.element_code = base + " + e";
    } else {
      const std::string extent = k == loop.block ? "" : size_code(SymExpr(stage.axes[k]));
      axis.element_code = digit("(" + base + " + e)", size_code(strides[k]), extent);
      axis.chunk_code = digit(base, size_code(strides[k]), extent);
    }
    add(stage.axes[k], std::move(axis));
  }
  if (count > 0) {
    loop.runs.push_back({loop.first, count, stage.width, "i + e", "i", {}});
    if (!whole)
      loop.runs.push_back(
          {loop.first + loop.block, count - loop.block, block_size, base + " + e", base, used});
  }
  loops_.push_back(std::move(loop));
}

IndexExpr LoopSpace::flat() const {
  Dims space(form_.prefix);
  IndexMap variables;
  for (uint32_t k = 0; k < form_.prefix.size(); ++k) variables.push_back(IndexExpr::variable(k));
  for (Dim axis : form_.stages[stage_].axes) {
    variables.push_back(IndexExpr::variable(
        loops_[stage_].first + static_cast<uint32_t>(space.size() - form_.prefix.size())));
    space.push_back(axis);
  }
  return linearize(space, variables);
}

IndexMap LoopSpace::identity(DimsRef dims) const { return delinearize(dims, flat(), extents_); }

IndexExpr LoopSpace::lower(const IndexExpr& e) const {
  IndexExpr result(e.constant());
  for (const IndexExpr::Term& term : e.terms()) {
    if (term.atom.kind != IndexExpr::Atom::Kind::variable) {
      IndexExpr::Atom atom = term.atom;
      atom.operand = std::make_shared<const IndexExpr>(lower(*atom.operand));
      result += IndexExpr::from_atom(std::move(atom)) * term.coefficient;
    } else if (const Variable& variable = variables_[term.atom.variable]; variable.alias) {
      result += lower(*variable.alias) * term.coefficient;
    } else if (!extents_[term.atom.variable].is(1)) {
      result += IndexExpr::variable(term.atom.variable) * term.coefficient;
    }
  }
  return result;
}

Level LoopSpace::level(const IndexExpr& e) const {
  Level highest = Level::row;
  const IndexExpr flat = lower(e);
  for (const IndexExpr::Term& term : flat.terms())
    highest = std::max(highest, term.atom.kind == IndexExpr::Atom::Kind::variable
                                    ? variables_[term.atom.variable].level
                                    : level(*term.atom.operand));
  return highest;
}

Level LoopSpace::level(const IndexMap& coords) const {
  Level highest = Level::row;
  for (const IndexExpr& e : coords) highest = std::max(highest, level(e));
  return highest;
}

bool LoopSpace::contiguous(const IndexExpr& e, int64_t alignment) const {
  const auto aligned = [&](const SymExpr& s) { return s.divisor(symbols_) % alignment == 0; };
  const IndexExpr flat = lower(e);
  const Stage& stage = form_.stages[stage_];
  const uint32_t first = loops_[stage_].first;
  size_t matched = stage.axes.size();
  SymExpr run = 1;
  while (matched > 0 && flat.coefficient(first + static_cast<uint32_t>(matched - 1)) == run)
    run = run * SymExpr(stage.axes[--matched]);
  if (matched == stage.axes.size() || (matched > 0 && !divides_by_chunk(run))) return false;
  if (!aligned(flat.constant())) return false;
  return llvm::all_of(flat.terms(), [&](const IndexExpr::Term& term) {
    if (term.atom.kind != IndexExpr::Atom::Kind::variable)
      return level(*term.atom.operand) != Level::element && aligned(term.coefficient);
    const bool in_run =
        term.atom.variable >= first + matched && term.atom.variable < first + stage.axes.size();
    return in_run ||
           (variables_[term.atom.variable].level != Level::element && aligned(term.coefficient));
  });
}

bool LoopSpace::fixed(const IndexExpr& e) const {
  return llvm::all_of(e.terms(), [&](const IndexExpr::Term& term) {
    return term.atom.kind == IndexExpr::Atom::Kind::variable && term.atom.variable < fixed_count_;
  });
}

bool LoopSpace::of_row(const IndexExpr& e) const {
  return llvm::any_of(lower(e).terms(), [&](const IndexExpr::Term& term) {
    return term.atom.kind == IndexExpr::Atom::Kind::variable && is_row_axis(term.atom.variable);
  });
}

std::string LoopSpace::take_chunk_axes() {
  std::string text;
  for (const auto& [name, declaration] : loops_[stage_].declarations) {
    bool& used = used_[name];
    if (used) text += declaration;
    used = false;
  }
  return text;
}

std::string LoopSpace::row_axes() const {
  std::string text;
  for (const auto& [name, declaration] : row_declarations_)
    if (used_.contains(name)) text += declaration;
  return text;
}

}  // namespace sinter
