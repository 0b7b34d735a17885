#include "kernels/cost.h"

#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <cmath>

#include "ir/op_flops.h"
#include "ir/op_roles.h"
#include "kernels/family.h"

namespace sinter {

namespace {

// The share of the multiprocessors' cycles in which kernels that arithmetic bounds issue an
// instruction.
constexpr double kIssuedShare = 0.75;

/// A value's part depends on its whole size, so that its bytes count the same however the ops that
/// read it are grouped.
void add_value(const FusionProblem& problem, ValueId value, double bytes, Moved& to) {
  const OpKind kind = problem.graph()[value].kind;
  const double half = problem.device().cache_bytes / 2;
  const double kept = kind == OpKind::weight || kind == OpKind::state
                          ? 0
                          : bytes * std::clamp(2 - problem.bytes(value) / half, 0.0, 1.0);
  to.streamed += bytes - kept;
  to.passed += kept;
}

void add_written(const FusionProblem& problem, Members members, Moved& to) {
  for (ValueId member : members)
    if (writes_state(problem.graph()[member]) || problem.read_outside(member, members))
      add_value(problem, member, problem.bytes(member), to);
}

/// The loads and the arithmetic of the epilogue, one after the other.
double epilogue_seconds(const GroupView& group, const ProductWork& work) {
  const FusionProblem& problem = group.problem;
  const Graph& graph = problem.graph();
  llvm::SmallVector<ValueId, 8> epilogue;
  double operations = 0;
  for (ValueId member : group.members) {
    if (member <= group.anchor() || problem.family(member)) continue;  // the anchor's companion
    epilogue.push_back(member);
    operations += flops(graph, graph[member], {problem.symbols(), problem.sizes()});
  }
  Moved behind;
  for (const auto& [root, bytes] : problem.reads(epilogue))
    if (!llvm::is_contained(group.members, root)) add_value(problem, root, bytes, behind);
  if (work.stores_behind) add_written(problem, group.members, behind);
  // A multiply-add counts as two operations of the rate, and an op of the epilogue as one.
  return memory_seconds(problem.device(), behind) +
         2 * operations / problem.device().float_flops_per_s;
}

}  // namespace

Moved moved(const FusionProblem& problem, Members members) {
  Moved moved;
  for (const auto& [root, bytes] : problem.reads(members)) add_value(problem, root, bytes, moved);
  add_written(problem, members, moved);
  return moved;
}

double memory_seconds(const DeviceDescription& device, const Moved& moved) {
  return moved.streamed / device.memory_bytes_per_s + moved.passed / device.cache_bytes_per_s;
}

double arithmetic_seconds(const FusionProblem& problem, Members members) {
  double count = 0;
  for (ValueId member : members)
    count += instructions(problem.graph(), problem.graph()[member],
                          {problem.symbols(), problem.sizes()});
  // A multiply-add counts as two operations of the rate.
  return 2 * count / (kIssuedShare * problem.device().float_flops_per_s);
}

double launch_seconds(const DeviceDescription& device, double blocks, const Moved& moved,
                      double arithmetic) {
  // A device is full at about two blocks per multiprocessor; fewer move fewer bytes per second.
  const double share =
      std::clamp(blocks / (2.0 * static_cast<double>(device.multiprocessors)), 1e-3, 1.0);
  return device.launch_s + std::max(memory_seconds(device, moved), arithmetic) / share;
}

double slowest_tiles(const DeviceDescription& device, DType operands, double tiles, double rows,
                     double columns, double length) {
  const auto multiprocessors = static_cast<double>(device.multiprocessors);
  return std::ceil(tiles / multiprocessors) * 2 * length *
         (rows * columns + static_cast<double>(kElementsOfRow) * (rows + columns)) *
         multiprocessors / peak_flops_per_s(device, operands);
}

KernelCost product_cost(const GroupView& group, const ProductWork& work, int64_t threads) {
  const FusionProblem& problem = group.problem;
  const DeviceDescription& device = problem.device();
  const Graph& graph = problem.graph();
  const Op& op = graph[group.anchor()];
  const DType operands = op.operands.empty() ? op.type.dtype : graph[op.operands[0]].type.dtype;
  const double operations =
      flops(graph, op, {problem.symbols(), problem.sizes()}) / flops_per_s(device, operands);
  const double latency = work.round_trips * device.latency_s;
  const double bytes =
      launch_seconds(device, 2 * work.blocks, moved(problem, group.members)) - device.launch_s;
  return {.seconds = device.launch_s + latency + std::max({bytes, operations, work.slowest}) +
                     epilogue_seconds(group, work),
          .blocks = work.blocks,
          .threads = threads};
}

std::optional<KernelCost> kernel_cost(const FusionProblem& problem, Members members,
                                      const GroupShape& shape, int64_t min_threads) {
  return shape.family->cost({.problem = problem, .members = members, .shape = shape}, min_threads);
}

double kernel_seconds(const FusionProblem& problem, llvm::ArrayRef<PartView> parts) {
  // Blocks of one kernel have as many threads as its widest part needs.
  int64_t threads = 1;
  llvm::SmallVector<KernelCost, 4> alone;
  for (const PartView& part : parts) {
    const auto own = kernel_cost(problem, part.members, part.shape);
    if (!own) return INFINITY;
    alone.push_back(*own);
    threads = std::max(threads, own->threads);
  }
  if (parts.size() == 1) return alone[0].seconds;
  double blocks = 0, arithmetic = 0;
  Moved bytes;
  for (const auto& [part, own] : llvm::zip(parts, alone)) {
    const auto widened = kernel_cost(problem, part.members, part.shape, threads);
    if (!widened || (own.on_chip && !widened->on_chip)) return INFINITY;
    blocks += widened->blocks;
    bytes += moved(problem, part.members);  // what parts share, each reads for itself
    arithmetic += arithmetic_seconds(problem, part.members);
  }
  return launch_seconds(problem.device(), blocks, bytes, arithmetic);
}

std::optional<KernelCost> streaming_cost(const GroupView& group, int64_t) {
  const DeviceDescription& device = group.problem.device();
  const double blocks = 2 * static_cast<double>(device.multiprocessors);
  return KernelCost{.seconds = launch_seconds(device, blocks, moved(group.problem, group.members)),
                    .blocks = blocks};
}

}  // namespace sinter
