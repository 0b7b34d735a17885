#include "ir/colocation.h"

#include <llvm/ADT/STLExtras.h>

#include <map>
#include <numeric>
#include <utility>

#include "ir/decompose.h"
#include "ir/integers.h"

namespace sinter {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 20;  // asked one by one

/// Extents after the tokens' axes; nullopt where one is no constant.
std::optional<llvm::SmallVector<int64_t, 4>> inner_extents(DimsRef dims, size_t token_axes) {
  llvm::SmallVector<int64_t, 4> extents;
  for (Dim dim : dims.drop_front(token_axes)) {
    if (!dim.is_constant()) return std::nullopt;
    extents.push_back(dim.constant());
  }
  return extents;
}

/// The least common multiple of two positive numbers, at most `most`.
int64_t common_period(int64_t a, int64_t b, int64_t most) {
  const int64_t factor = a / std::gcd(a, b);
  return factor > most / b ? most : std::min(factor * b, most);
}

/// A read of sums: element j of the reader takes the sum of row j + apart.
struct SumRead {
  int64_t apart, width;
  struct Condition {
    int64_t stride, extent;  // element j has the variable's value j / stride % extent
    LoopRange range;
  };
  llvm::SmallVector<Condition, 2> only;

  bool reads(int64_t element) const {
    return llvm::all_of(
        only, [&](const Condition& p) { return p.range.holds(element / p.stride % p.extent); });
  }
  /// The period, in elements, of reads() and of positions among `rows` rows; at most `width`.
  int64_t period(int64_t rows) const {
    if (width == 0) return 0;
    int64_t result = std::min(rows, width);
    for (const Condition& p : only) result = common_period(result, p.stride * p.extent, width);
    return result;
  }
  /// The first element that reads; -1: none.
  int64_t first() const {
    for (int64_t element = 0, end = period(1); element < end; ++element)
      if (reads(element)) return element;
    return -1;
  }
};

/// `e` for elements of ranges where (v - shift) mod m is one number: there
/// (v - shift) / m = (v - shift - the number) / m, without a remainder.
IndexExpr without_quotients(const IndexExpr& e, llvm::ArrayRef<LoopRange> only) {
  IndexExpr result(e.constant());
  for (const IndexExpr::Term& term : e.terms()) {
    const auto known = llvm::find_if(only, [&](const LoopRange& range) {
      return term.atom.kind == IndexExpr::Atom::Kind::quotient && range.end == range.begin + 1 &&
             term.atom.divisor.is(range.modulus) &&
             term.coefficient.divide_exactly(range.modulus) &&
             *term.atom.operand == IndexExpr::variable(range.variable) + IndexExpr(-range.shift);
    });
    if (known == only.end())
      result += IndexExpr::from_atom(term.atom) * term.coefficient;
    else
      result += (IndexExpr::variable(known->variable) + IndexExpr(-known->shift - known->begin)) *
                *term.coefficient.divide_exactly(known->modulus);
  }
  return result;
}

class RowDeal {
 public:
  RowDeal(const Graph& graph, ValueId anchor, llvm::ArrayRef<ValueId> members,
          llvm::function_ref<const OpFacts&(ValueId)> facts, uint32_t row_axes)
      : graph_(graph),
        anchor_(anchor),
        token_axes_(graph[anchor].type.rank() - row_axes),
        members_(members),
        facts_(facts) {}

  std::variant<ColocatedRows, NotColocated> find() {
    for (ValueId member : members_)
      if (!add(member)) return stranger_;
    join_sections();
    if (!deal()) return stranger_;
    llvm::sort(rows_.sections, [](const auto& a, const auto& b) {
      return std::pair(a.first, a.width) < std::pair(b.first, b.width);
    });
    for (ColocatedRows::Section& section : rows_.sections) llvm::sort(section.members);
    return std::move(rows_);
  }

 private:
  /// Puts a member into the section of the members that it reads.
  bool add(ValueId member) {
    const OpFacts& facts = facts_(member);
    stranger_ = {member, anchor_};
    const DimsRef tokens = DimsRef(graph_[anchor_].type.dims).take_front(token_axes_),
                  dims = facts.dims;
    if (facts.reduces || dims.size() < token_axes_ || dims.take_front(token_axes_) != tokens)
      return false;
    const auto extents = inner_extents(dims, token_axes_);
    if (!extents) return false;
    const int64_t width = elements_of(*extents);
    auto section = static_cast<uint32_t>(rows_.sections.size());
    rows_.sections.push_back({-1, width, {member}});
    reads_.emplace_back();
    for (const Read& read : facts.reads) {
      stranger_.root = read.root;
      if (read.root == anchor_) {
        if (!add_sum(section, read)) return false;
      } else if (const auto other = section_of(read.root)) {
        if (apart(read) != 0 || rows_.sections[*other].width != width) return false;
        unite(*other, section);
        section = *other;
      }
    }
    return true;
  }

  std::optional<uint32_t> section_of(ValueId id) const {
    for (uint32_t s = 0; s < rows_.sections.size(); ++s)
      if (llvm::is_contained(rows_.sections[s].members, id)) return s;
    return std::nullopt;
  }

  void unite(uint32_t into, uint32_t from) {
    if (into == from) return;
    llvm::append_range(rows_.sections[into].members,
                       std::exchange(rows_.sections[from].members, {}));
    llvm::append_range(reads_[into], std::exchange(reads_[from], {}));
  }

  /// The place that is read in its value less the reader's own, where that is one number.
  std::optional<int64_t> apart(const Read& read) const {
    const DimsRef dims = graph_[read.root].type.dims;
    if (read.loaded || dims.size() < token_axes_ || read.space.size() < token_axes_)
      return std::nullopt;
    for (uint32_t axis = 0; axis < token_axes_; ++axis)
      if (read.coords[axis] != IndexExpr::variable(axis) &&
          !(dims[axis].is(1) && read.coords[axis] == IndexExpr()))
        return std::nullopt;
    const IndexMap there(read.coords.begin() + token_axes_, read.coords.end());
    IndexMap here;
    for (uint32_t i = token_axes_; i < read.space.size(); ++i)
      here.push_back(IndexExpr::variable(i));
    IndexExpr difference = linearize(dims.drop_front(token_axes_), there);
    difference += linearize(DimsRef(read.space).drop_front(token_axes_), here) * SymExpr(-1);
    difference = without_quotients(difference, read.only);
    if (!difference.terms().empty() || !difference.constant().is_constant()) return std::nullopt;
    return difference.constant().constant();
  }

  bool add_sum(uint32_t section, const Read& read) {
    const auto distance = apart(read);
    const auto extents = inner_extents(read.space, token_axes_);
    if (!distance || !extents) return false;
    SumRead sum{*distance, elements_of(*extents), {}};
    for (const LoopRange& range : read.only) {
      if (range.variable < token_axes_) continue;  // of the tokens some
      const size_t axis = range.variable - token_axes_;
      const int64_t stride = elements_of(llvm::ArrayRef(*extents).drop_front(axis + 1));
      sum.only.push_back({stride, (*extents)[axis], range});
    }
    if (!sum.only.empty() && sum.width > kMaxElements) return false;
    reads_[section].push_back(std::move(sum));
    return true;
  }

  /// A section begins at the first row that it reads, or at row 0 if it reads none; sections of the
  /// same rows are joined.
  void join_sections() {
    for (uint32_t s = 0; s < rows_.sections.size(); ++s) {
      ColocatedRows::Section& section = rows_.sections[s];
      for (const SumRead& read : reads_[s])
        if (const int64_t first = read.first(); first >= 0)
          section.first =
              section.first < 0 ? first + read.apart : std::min(section.first, first + read.apart);
      section.first = std::max<int64_t>(section.first, 0);
      for (uint32_t other = 0; other < s && !section.members.empty(); ++other)
        if (!rows_.sections[other].members.empty() &&
            rows_.sections[other].first == section.first &&
            rows_.sections[other].width == section.width)
          unite(other, s);
    }
  }

  bool deal() {
    const int64_t all = elements_of(*inner_extents(graph_[anchor_].type.dims, token_axes_));
    int64_t common = 0;  // divisor of the distances
    for (uint32_t s = 0; s < rows_.sections.size(); ++s) {
      const ColocatedRows::Section& section = rows_.sections[s];
      if (section.members.empty()) continue;
      stranger_ = {section.members[0], anchor_};
      if (section.first + section.width > all) return false;
      for (SumRead& read : reads_[s]) {
        read.apart -= section.first;  // from now on of the section's own row
        common = std::gcd(common, std::abs(read.apart));
      }
    }
    if (common > 0 && !find_units(common, all)) return false;
    size_t kept = 0;
    for (uint32_t s = 0; s < rows_.sections.size(); ++s)
      if (!rows_.sections[s].members.empty()) std::swap(rows_.sections[kept++], rows_.sections[s]);
    rows_.sections.truncate(kept);
    return true;
  }

  /// The smallest classes that serve: `apart` divides all distances between rows of one.
  bool find_units(int64_t apart, int64_t all) {
    for (int64_t units = 2; units <= ColocatedRows::kMaxUnits; ++units)
      for (int64_t steps = 1; steps < units; ++steps) {
        const int64_t stride = apart / steps;
        if (apart % steps != 0 || all % (stride * units) != 0 || !stays_in(stride * units))
          continue;
        rows_.stride = stride;
        rows_.units = units;
        return true;
      }
    return false;
  }
  /// No element reads across a multiple of `period` rows.
  bool stays_in(int64_t period) {
    for (uint32_t s = 0; s < rows_.sections.size(); ++s) {
      const ColocatedRows::Section& section = rows_.sections[s];
      for (const SumRead& read : reads_[s]) {
        if (read.apart != 0 && !stays_in(period, section.first, read)) {
          stranger_ = {section.members[0], anchor_};
          return false;
        }
      }
    }
    return true;
  }

  static bool stays_in(int64_t period, int64_t first, const SumRead& read) {
    const auto stays = [&](int64_t element) {
      const int64_t at = (first + element) % period + read.apart;
      return at >= 0 && at < period;
    };
    // All elements of a run that crosses no multiple stay if its ends do; of one that crosses, the
    // last before or the first after leaves.
    if (read.only.empty())
      return first % period + read.width <= period && stays(0) && stays(read.width - 1);
    for (int64_t element = 0, end = read.period(period); element < end; ++element)
      if (read.reads(element) && !stays(element)) return false;
    return true;
  }

  const Graph& graph_;
  ValueId anchor_;
  uint32_t token_axes_;  // leading axes of the product
  llvm::ArrayRef<ValueId> members_;
  llvm::function_ref<const OpFacts&(ValueId)> facts_;
  ColocatedRows rows_;
  std::vector<llvm::SmallVector<SumRead, 4>> reads_;  // by section
  NotColocated stranger_;
};

}  // namespace

std::variant<ColocatedRows, NotColocated> colocated_rows(
    const Graph& graph, ValueId anchor, llvm::ArrayRef<ValueId> members,
    llvm::function_ref<const OpFacts&(ValueId)> facts, uint32_t row_axes) {
  return RowDeal(graph, anchor, members, facts, row_axes).find();
}

std::variant<ColocatedRows, NotColocated> colocated_rows(const Graph& results, ValueId sums,
                                                         llvm::ArrayRef<Symbol> symbols,
                                                         uint32_t row_axes) {
  const Graph graph = decompose_all(results, symbols);
  const ValueId anchor = graph.inputs[llvm::find(results.inputs, sums) - results.inputs.begin()];
  std::map<ValueId, OpFacts> facts;
  for (ValueId output : graph.outputs)
    if (!facts.contains(output)) facts.emplace(output, value_facts(graph, output, symbols));
  llvm::SmallVector<ValueId, 4> values;
  for (const auto& [value, of_it] : facts) values.push_back(value);
  auto found = colocated_rows(
      graph, anchor, values, [&](ValueId id) -> const OpFacts& { return facts.at(id); }, row_axes);
  if (auto* stranger = std::get_if<NotColocated>(&found)) {
    const auto at = llvm::find(graph.outputs, stranger->reader) - graph.outputs.begin();
    return NotColocated{results.outputs[at], sums};
  }
  for (ColocatedRows::Section& section : std::get<ColocatedRows>(found).sections) {
    llvm::SmallVector<ValueId, 4> members;
    for (size_t k = 0; k < graph.outputs.size(); ++k)
      if (llvm::is_contained(section.members, graph.outputs[k]))
        members.push_back(results.outputs[k]);
    section.members = std::move(members);
  }
  return found;
}

}  // namespace sinter
