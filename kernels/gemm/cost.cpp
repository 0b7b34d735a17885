// The cost of a library call around a product, of the tiles that suit it best.
#include "kernels/cost.h"

#include <algorithm>
#include <cmath>

#include "ir/op_flops.h"

namespace sinter {
namespace {

// Tiles that the library has: warpgroups multiply 64 rows each and any multiple of 8 columns.
constexpr double kRows[] = {64, 128, 256};
constexpr double kFewestColumns = 16, kMaxColumns = 256;

}  // namespace

std::optional<KernelCost> gemm_cost(const GroupView& group, int64_t) {
  const FusionProblem& problem = group.problem;
  const Graph& graph = problem.graph();
  const DeviceDescription& device = problem.device();
  const Op& product = graph[group.anchor()];
  const DType operands = graph[product.operands[0]].type.dtype;
  const Dims& dims = product.type.dims;
  // The blocks fill a device: what a tile leaves idle is in the time of the slowest.
  ProductWork work{.blocks = static_cast<double>(device.multiprocessors)};
  const double elements = problem.count(volume(dims));
  if (product.kind == OpKind::attention || dims.size() < 2 || elements < 1)
    return product_cost(group, work);
  const double columns = problem.extent(dims.back());
  // An einsum's leading axes number products of their own.
  const double rows =
      product.kind == OpKind::einsum ? problem.extent(dims[dims.size() - 2]) : elements / columns;
  const double length =
      flops(graph, product, {problem.symbols(), problem.sizes()}) / (2 * elements);
  work.slowest = INFINITY;
  for (const double of_rows : kRows)
    for (double of_columns = kFewestColumns; of_columns <= kMaxColumns; of_columns += 16) {
      // Either operand's rows can be the rows of a tile.
      for (const auto& [m, n] : {std::pair(rows, columns), std::pair(columns, rows)})
        work.slowest = std::min(work.slowest,
                                slowest_tiles(device, operands,
                                              std::ceil(m / of_rows) * std::ceil(n / of_columns) *
                                                  elements / (rows * columns),
                                              of_rows, of_columns, length));
    }
  return product_cost(group, work);
}

}  // namespace sinter
