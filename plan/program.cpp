#include "plan/program.h"

#include <llvm/ADT/STLExtras.h>

#include <algorithm>

#include "ir/custom_op.h"
#include "ir/device_order.h"
#include "ir/grouping.h"

namespace sinter {
std::optional<int64_t> shared_bytes(const Launch& launch, llvm::ArrayRef<int64_t> symbol_values) {
  if (launch.wanted_shared_bytes.is(0)) return launch.shared_bytes;
  const auto wanted = launch.wanted_shared_bytes.evaluate(symbol_values);
  if (!wanted) return std::nullopt;
  return std::clamp<int64_t>(*wanted, 0, launch.shared_bytes);
}

std::optional<LaunchGrid> grid_of(const Launch& launch, llvm::ArrayRef<int64_t> symbol_values) {
  const auto rows = launch.rows.evaluate(symbol_values);
  const auto per_row = launch.symbolic_items.is(0) ? std::optional(launch.items_per_row)
                                                   : launch.symbolic_items.evaluate(symbol_values);
  int64_t items = 0;
  if (!rows || !per_row || __builtin_mul_overflow(*rows, *per_row, &items)) return std::nullopt;
  const bool alone = launch.items_without_clusters > 0 && items >= launch.items_without_clusters;
  LaunchGrid grid{.cluster = alone ? 1 : launch.cluster};
  int64_t clusters = items / launch.items_per_block + (items % launch.items_per_block != 0);
  if (launch.most_blocks > 0) clusters = std::min(clusters, launch.most_blocks);
  if (__builtin_mul_overflow(clusters, grid.cluster, &grid.blocks)) return std::nullopt;
  return grid;
}

const EntryPlan* Program::find_entry(std::string_view name) const {
  for (const EntryPlan& entry : entries)
    if (entry.name == name) return &entry;
  return nullptr;
}

std::vector<std::string> arena_values(const EntryPlan& entry) {
  std::vector<std::string> names;
  for (const Buffer& buffer : entry.buffers)
    if (buffer.place == Buffer::Place::arena && !llvm::is_contained(names, buffer.value))
      names.push_back(buffer.value);
  return names;
}

bool follows_stated_order(const Kernel& kernel, llvm::ArrayRef<int64_t> symbol_values) {
  return llvm::none_of(kernel.group.ops(), [&](const Op& op) {
    return has_device_order(kernel.group, op, symbol_values);
  });
}

std::optional<double> host_tolerance(const Kernel& kernel) {
  std::optional<double> tolerance;
  for (const Op& op : kernel.group.ops()) {
    if (!computes(op)) continue;
    if (op.kind != OpKind::custom || tolerance) return std::nullopt;
    tolerance = custom_op_of(op).tolerance;
  }
  return tolerance;
}

}  // namespace sinter
