#include "passes/fusion/memory_order.h"

#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <set>

#include "ir/op_roles.h"
#include "ir/sym_expr.h"

namespace sinter {
namespace {

/// Groups that are considered instead of the next one.
constexpr size_t kWindow = 16;

/// Groups that have run or have not, and the intermediate values between them.
class Schedule {
 public:
  Schedule(const Graph& graph, const Grouping& grouping)
      : made_bytes_(grouping.groups.size()),
        read_(grouping.groups.size()),
        needs_(grouping.groups.size()),
        bytes_(graph.size()),
        readers_(graph.size()) {
    std::vector<bool> is_output(graph.size(), false);
    for (ValueId output : graph.outputs) is_output[root_of(graph, output).index] = true;
    for (uint32_t i = 0; i < graph.size(); ++i) {
      const uint32_t reader = grouping.group_of[i];
      if (reader == UINT32_MAX) continue;
      for (ValueId operand : graph.ops()[i].operands) {
        const uint32_t value = root_of(graph, operand).index;
        const uint32_t maker = grouping.group_of[value];
        if (maker == UINT32_MAX || maker == reader || !read_[reader].insert(value).second) continue;
        needs_[reader].insert(maker);
        ++readers_[value];
      }
    }
    for (uint32_t i = 0; i < graph.size(); ++i) {
      if (readers_[i] == 0 || is_output[i]) continue;
      const TensorType& type = graph.ops()[i].type;
      if (const SymExpr count = volume(type.dims); count.is_constant())
        bytes_[i] = count.constant() * dtype_info(type.dtype).bits / 8;
      made_bytes_[grouping.group_of[i]] += bytes_[i];
    }
    keep_readers_before_overwriters(graph, grouping, is_output);
    done_.assign(grouping.groups.size(), false);
  }

  bool is_done(uint32_t group) const { return done_[group]; }
  bool can_run(uint32_t group) const {
    return llvm::all_of(needs_[group], [&](uint32_t needed) { return done_[needed]; });
  }
  /// Bytes that are free behind the group, less those that it makes.
  int64_t freed(uint32_t group) const {
    int64_t bytes = -made_bytes_[group];
    for (uint32_t value : read_[group])
      if (readers_[value] == 1) bytes += bytes_[value];
    return bytes;
  }
  void run(uint32_t group) {
    done_[group] = true;
    for (uint32_t value : read_[group]) --readers_[value];
  }

 private:
  /// An output may take the memory of an input that its group reads (plan/shared_outputs.h) where
  /// no later group reads the input: readers before it stay before it.
  void keep_readers_before_overwriters(const Graph& graph, const Grouping& grouping,
                                       const std::vector<bool>& is_output) {
    std::vector<std::vector<uint32_t>> readers_of_input(graph.size());
    for (uint32_t group = 0; group < grouping.groups.size(); ++group) {
      std::set<uint32_t> inputs;
      for (ValueId member : grouping.groups[group].members)
        for (ValueId operand : graph[member].operands)
          if (const ValueId root = root_of(graph, operand); graph[root].kind == OpKind::input)
            inputs.insert(root.index);
      const auto may_overwrite = [&](uint32_t input) {
        return llvm::any_of(grouping.groups[group].members, [&](ValueId member) {
          return is_output[member.index] && graph[member].type == graph.ops()[input].type;
        });
      };
      for (uint32_t input : inputs) {
        std::vector<uint32_t>& readers = readers_of_input[input];
        if (may_overwrite(input)) needs_[group].insert(readers.begin(), readers.end());
        readers.push_back(group);
      }
    }
  }

  std::vector<int64_t> made_bytes_;        // by group: of intermediate values
  std::vector<std::set<uint32_t>> read_;   // by group: values of other groups
  std::vector<std::set<uint32_t>> needs_;  // by group: those that make them
  std::vector<int64_t> bytes_;             // by value; 0: it is no intermediate one
  std::vector<uint32_t> readers_;          // by value: groups that have not run
  std::vector<bool> done_;                 // by group
};

/// The group to run next: `first`, the first that has not run, or one behind it.
uint32_t next_group(const Schedule& schedule, uint32_t first, uint32_t count) {
  if (schedule.freed(first) >= 0) return first;
  uint32_t best = first;
  int64_t most = kMinFreedBytes - 1;
  const auto end = std::min<uint32_t>(count, first + kWindow);
  for (uint32_t group = first + 1; group < end; ++group) {
    if (schedule.is_done(group) || !schedule.can_run(group)) continue;
    if (const int64_t freed = schedule.freed(group); freed > most) best = group, most = freed;
  }
  return best;
}

}  // namespace

Grouping memory_order(const Graph& graph, Grouping grouping) {
  if (llvm::any_of(graph.ops(), [](const Op& op) { return writes_state(op); })) return grouping;
  Schedule schedule(graph, grouping);
  const auto count = static_cast<uint32_t>(grouping.groups.size());
  std::vector<Group> ordered;
  for (uint32_t first = 0; first < count;) {
    const uint32_t group = next_group(schedule, first, count);
    schedule.run(group);
    for (ValueId member : grouping.groups[group].members)
      grouping.group_of[member.index] = static_cast<uint32_t>(ordered.size());
    ordered.push_back(std::move(grouping.groups[group]));
    while (first < count && schedule.is_done(first)) ++first;
  }
  grouping.groups = std::move(ordered);
  return grouping;
}

}  // namespace sinter
