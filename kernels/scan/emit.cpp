// cumulative_sum: which form of kernels/scan it takes.
#include <algorithm>
#include <bit>

#include "codegen/emission/emit_context.h"
#include "codegen/emission/emit_index.h"
#include "codegen/emission/emit_scalar.h"
#include "codegen/emission/kernel_body.h"
#include "ir/contraction.h"
#include "kernels/scan/order.h"

namespace sinter {
namespace {

// Blocks of short rows have 80 registers a thread, of columns 64, of long rows 64, or 128 where a
// multiprocessor has one of them.
constexpr int64_t kWarpRowThreads = 128, kResidentWarpRows = 6;
constexpr int64_t kLongRowThreads = 32 * kScanGroups, kResidentLongRows = 2;
constexpr int64_t kColumnsAcross = 32, kResidentColumnThreads = 1024;
// Rows of fewer elements have a warp even where it is the only one of a multiprocessor.
constexpr int64_t kLongRow = 2048;
// Rows for each multiprocessor from which on warps alone keep it busy.
constexpr int64_t kBusyWarps = 16;

class ScanKernel {
 public:
  explicit ScanKernel(const EmitContext& context)
      : group_(context.group),
        symbols_(context.symbols),
        parameters_(context.parameters),
        device_(context.device),
        op_(context.anchor_op()) {
    const Dims& dims = op_.type.dims;
    const int64_t axis = op_.attrs.get<int64_t>(AttrName::axis);
    n_ = SymExpr(dims[axis]);
    outer_ = volume(DimsRef(dims).take_front(axis));
    inner_ = volume(DimsRef(dims).drop_front(axis + 1));
    outer_stride_ = n_ * inner_;
    stride_ = inner_;
  }

  Result<KernelBody> emit() {
    SINTER_TRY(read_operand());
    if (inner_.is(1) && stride_.is(1))
      rows();
    else
      columns();
    return std::move(body_);
  }

 private:
  bool flag(AttrName name) const {
    return op_.attrs.has(name) && op_.attrs.get<int64_t>(name) == 1;
  }
  int64_t most(const SymExpr& e) const { return e.upper_bound(symbols_); }
  int64_t chunks(int64_t elements) const { return (elements + kScanChunk - 1) / kScanChunk; }
  static int64_t up_to_power(int64_t count, int64_t most) {
    return std::min(most, static_cast<int64_t>(
                              std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(count, 1)))));
  }
  bool all_divide(int64_t by, std::initializer_list<SymExpr> sizes) const {
    return std::all_of(sizes.begin(), sizes.end(),
                       [&](const SymExpr& e) { return e.divisor(symbols_) % by == 0; });
  }
  std::string code(const SymExpr& e) const { return size_code(e, parameters_, false); }
  bool is_wide() const { return dtype_info(op_.type.dtype).bits == 32; }

  /// Where the operand's elements stand: a matrix has a stride of its own, all else is dense.
  Status read_operand() {
    const ValueId x = op_.operands[0];
    x_ = fmt::format("x{}", *input_of(group_, x));
    if (op_.type.rank() == 2) {
      if (const auto matrix = strided_rows(group_, x)) {
        offset_ = matrix->offset;
        const bool along_rows = op_.attrs.get<int64_t>(AttrName::axis) == 1;
        (along_rows ? outer_stride_ : stride_) = matrix->row_stride;
        if (!offset_.is(0)) x_ += " + " + size_code(offset_, parameters_);
        return {};
      }
    } else if (is_dense(group_, x)) {
      return {};
    }
    return fail("cumulative_sum reads a value without rows of neighbouring elements", {}, {},
                ExitCode::internal_error);
  }

  std::string config(std::string_view fields) const {
    return fmt::format(
        "struct Config {{\n"
        "  using Element = {};\n"
        "  static constexpr bool kReverse = {}, kExclusive = {};\n"
        "{}"
        "}};\n\n",
        memory_type(op_.type.dtype), flag(AttrName::reverse), flag(AttrName::exclusive), fields);
  }

  void rows() {
    body_.includes = "#include \"kernels/scan/scan_rows.cuh\"\n";
    const int64_t n = most(n_), rows = most(outer_), processors = device_.multiprocessors;
    const bool is_long = n > kLongRow && rows < processors * kBusyWarps;
    const bool is_alone = is_long && rows <= processors;  // a block with its multiprocessor
    const int64_t lanes = is_long ? kScanLanes : up_to_power(chunks(n), kScanLanes);
    // Bytes of a thread that are on their way while as many are added: 64, or 32.
    const int64_t unit = is_long ? kScanTile : kScanGroup;
    const int64_t max_groups = (is_wide() ? 2 : 4) / (is_long && !is_alone ? 2 : 1);
    const int64_t groups = up_to_power((n + unit - 1) / unit, max_groups);
    int64_t segments = 1;
    if (device_.has.clusters && is_long && n >= kMaxCluster * groups * kScanTile &&
        rows * kMaxCluster <= processors)
      segments = kMaxCluster;
    const int64_t threads = is_long ? kLongRowThreads : kWarpRowThreads;
    body_.globals = config(fmt::format(
        "  static constexpr bool kAligned = {};\n"
        "  static constexpr int kLanes = {}, kWarps = {}, kGroups = {}, kThreads = {}, kSegments = "
        "{};\n",
        all_divide(8, {n_, offset_, outer_stride_}), lanes, is_long ? kScanGroups : 1, groups,
        threads, segments));
    if (is_long)
      body_.text = fmt::format(
          "__shared__ ScanShared<Config> shared;\nscan_long_rows<Config>({}, {}, y0, {}, "
          "shared);\n",
          x_, code(outer_stride_), code(n_));
    else
      body_.text = fmt::format("scan_rows<Config>({}, {}, y0, {}, {});\n", x_, code(outer_stride_),
                               code(outer_), code(n_));
    launch(outer_, is_long ? 1 : threads / lanes, threads);
    body_.resident_blocks = !is_long ? kResidentWarpRows : is_alone ? 1 : kResidentLongRows;
    body_.launch.cluster = segments;
  }

  void columns() {
    body_.includes = "#include \"kernels/scan/scan_columns.cuh\"\n";
    const bool pair = !is_wide() && all_divide(2, {inner_, offset_, outer_stride_, stride_});
    const int64_t chunks_across = up_to_power(chunks(most(n_)), kScanLanes);
    body_.globals =
        config(fmt::format("  static constexpr int kChunks = {};\n"
                           "  static constexpr bool kPair = {};\n",
                           chunks_across, pair));
    body_.text = fmt::format(
        "__shared__ ColumnShared<Config> shared;\nscan_columns<Config>({}, y0, {{{}, {}, {}, {}, "
        "{}}}, shared);\n",
        x_, code(outer_), code(n_), code(inner_), code(outer_stride_), code(stride_));
    launch(outer_ * inner_, kColumnsAcross * (pair ? 2 : 1), kColumnsAcross * chunks_across);
    body_.resident_blocks = kResidentColumnThreads / body_.launch.threads;
  }

  void launch(const SymExpr& items, int64_t of_block, int64_t threads) {
    body_.launch.rows = items;
    body_.launch.items_per_block = of_block;
    body_.launch.threads = threads;
  }

  const Graph& group_;
  llvm::ArrayRef<Symbol> symbols_;
  llvm::ArrayRef<SymbolId> parameters_;
  const DeviceDescription& device_;
  const Op& op_;
  SymExpr outer_, n_, inner_;                   // extents
  SymExpr offset_ = 0, outer_stride_, stride_;  // of the operand, in elements
  std::string x_;                               // its first element
  KernelBody body_;
};

}  // namespace

Result<KernelBody> emit_scan(const EmitContext& context) { return ScanKernel(context).emit(); }

}  // namespace sinter
