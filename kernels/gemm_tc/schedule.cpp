#include "kernels/gemm_tc/schedule.h"

#include "kernels/gemm_tc/order.h"
#include "kernels/tile/config.h"
#include "kernels/tile/layout.h"

namespace sinter {
namespace {

constexpr int64_t kDeclaredBytes = 1024;  // barriers, and the alignment of the tiles
constexpr int64_t kLeastStages = 3, kMostStages = 6;

}  // namespace

std::optional<TiledLinearConfig> tiled_linear_config(int64_t columns,
                                                     const DeviceDescription& device) {
  if (!device.has.wgmma) return std::nullopt;
  TiledLinearConfig config{.rows = 128, .columns = columns <= 64 ? 64 : 128, .threads = 384};
  const int64_t stage = tile_bytes(static_cast<int>(config.rows + config.columns),
                                   static_cast<int>(kTiledLinearDepth));
  const auto stages =
      stages_that_fit(device.max_shared_bytes - kDeclaredBytes, stage, kLeastStages, kMostStages);
  if (!stages) return std::nullopt;
  config.stages = *stages;
  config.shared_bytes = *stages * stage;
  return config;
}

std::optional<StridedMatrix> tensor_map_rows(const Graph& graph, ValueId id,
                                             llvm::ArrayRef<Symbol> symbols) {
  const Dims& dims = graph[id].type.dims;
  std::optional<StridedMatrix> rows;
  if (dims.size() == 2)
    rows = strided_rows(graph, id);
  else if (is_dense(graph, id))
    rows = {root_of(graph, id), 0, SymExpr(dims.back()), 1};
  const auto aligned = [&](const SymExpr& elements) {
    return elements.divisor(symbols) % kTiledLinearMultiple == 0;
  };
  if (!rows || !rows->column_stride.is(1) || !aligned(rows->row_stride) || !aligned(rows->offset))
    return std::nullopt;
  return rows;
}

}  // namespace sinter
