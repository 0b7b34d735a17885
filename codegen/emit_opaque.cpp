// Opaque ops: a template of the kernel library with what the group fixes, and the addresses of its
// operands' rows.
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/Sequence.h>

#include <algorithm>

#include "codegen/emit_index.h"
#include "codegen/emit_kernel_body.h"
#include "codegen/emit_scalar.h"
#include "codegen/launch_order.h"
#include "ir/attention_order.h"
#include "ir/contraction.h"
#include "ir/sampling.h"

namespace sinter {
namespace {

// Threads of a multiprocessor that have 64 registers each.
constexpr int64_t kResidentThreads = 1024;

/// Blocks' worth of heads, of all tokens, from which on attention has no clusters: as many as
/// nearly every multiprocessor holds, two at most, so that blocks alone keep it busy. A cluster's
/// blocks must find room at the same time, and of clusters of 3 fewer do. (One H200, after 1,024
/// tokens: of 8 sequences of Llama-2-7B 43 us in place of 58, of 4 27 in place of 29 but a whole
/// token slower; a token of 8 sequences of Llama-3.2-1B 1.22 ms in place of 1.45.) Tokens that see
/// far more keys than the others are the price: their splits are taken one after the other.
int64_t items_without_clusters(const DeviceDescription& device, int64_t resident_blocks) {
  return std::min<int64_t>(resident_blocks, 2) * device.multiprocessors -
         device.multiprocessors / 16;
}

class OpaqueKernel {
 public:
  OpaqueKernel(const Graph& group, llvm::ArrayRef<Symbol> symbols,
               llvm::ArrayRef<SymbolId> parameters, const DeviceDescription& device,
               const Overlap& overlap)
      : group_(group),
        symbols_(symbols),
        parameters_(parameters),
        device_(device),
        overlap_(overlap),
        op_(group[group.outputs[0]]) {}

  Result<KernelBody> emit() {
    const bool alone = group_.outputs.size() == 1 && op_class(op_) == OpClass::opaque &&
                       llvm::count_if(group_.ops(), [](const Op& op) {
                         return op_class(op) != OpClass::view && op_class(op) != OpClass::leaf;
                       }) == 1;
    if (!alone)
      return fail("an opaque op shares its kernel with others", {},
                  "compute the ops in separate kernels", ExitCode::internal_error);
    body_.launch.rows = SymExpr(op_.type.dims[0]);
    switch (op_.kind) {
      case OpKind::attention_few:
        SINTER_TRY(attention_few());
        break;
      case OpKind::sample:
        SINTER_TRY(sample());
        break;
      default:
        SINTER_CHECK(false, "{}", op_info(op_.kind).name);
    }
    return std::move(body_);
  }

 private:
  int64_t integer(AttrName name) const { return op_.attrs.get<int64_t>(name); }
  double number(AttrName name) const {
    const AttrValue* value = op_.attrs.find(name);
    return value ? std::get<double>(*value) : 0;
  }

  /// "x0": the pointer of the tensor that an operand is a view of.
  std::string root(size_t operand) const {
    return fmt::format("x{}", llvm::find(group_.inputs, root_of(group_, op_.operands[operand])) -
                                  group_.inputs.begin());
  }

  /// "x0": the pointer of an operand that is read as it stands in memory.
  Result<std::string> pointer(size_t operand) const {
    if (!is_dense(group_, op_.operands[operand]))
      return fail("an opaque op reads a value that does not stand in memory as it is", {}, {},
                  ExitCode::internal_error);
    return root(operand);
  }

  /// "x0 + 64, 4096ll": the first element and the row stride of a matrix; notes its alignment.
  Result<std::string> rows(size_t operand) {
    const auto matrix = strided_rows(group_, op_.operands[operand]);
    if (!matrix)
      return fail("an opaque op reads a matrix without rows of neighbouring elements", {}, {},
                  ExitCode::internal_error);
    aligned_ = aligned_ && matrix->row_stride.divisor(symbols_) % 8 == 0 &&
               matrix->offset.divisor(symbols_) % 8 == 0;
    const std::string offset =
        matrix->offset.is(0) ? "" : " + " + size_code(matrix->offset, parameters_);
    return fmt::format("{}{}, {}", root(operand), offset,
                       size_code(matrix->row_stride, parameters_, false));
  }

  Status attention_few() {
    const int64_t heads = integer(AttrName::heads), kv_heads = integer(AttrName::kv_heads);
    const int64_t splits = integer(AttrName::splits), group = heads / kv_heads;
    const auto width = static_cast<int>(group_[op_.operands[0]].type.dims[1].constant() / heads);
    const auto value_width = static_cast<int>(op_.type.dims[1].constant() / heads);
    const int64_t tile = attention_tile(group);
    const int lanes = attention_lanes(width, value_width);
    const int64_t window = op_.attrs.has(AttrName::window) ? integer(AttrName::window) : 0;
    SINTER_LET(q, rows(0));
    SINTER_LET(keys, rows(1));
    SINTER_LET(values, rows(2));
    SINTER_LET(first, pointer(3));
    SINTER_LET(last, pointer(4));
    body_.includes = "#include \"kernels/decode_attention/attention.cuh\"\n";
    body_.globals = fmt::format(
        "struct Config {{\n"
        "  static constexpr int kHeads = {}, kKvHeads = {}, kTile = {}, kWidth = {}, kValueWidth = "
        "{};\n"
        "  static constexpr int kSplits = {};\n"
        "  static constexpr bool kAligned = {};\n"
        "  static constexpr float kScale = {}, kSoftcap = {};\n"
        "  static constexpr long long kWindow = {};\n"
        "}};\n\n",
        heads, kv_heads, tile, width, value_width, splits, aligned_,
        literal_code(number(AttrName::scale), DType::f32),
        literal_code(number(AttrName::softcap), DType::f32), window);
    const bool early = overlap_.reads_early();
    body_.waits = early;
    body_.early_inputs = overlap_.early_inputs;
    const std::string start =
        early ? fmt::format("attention.start_early({});\n{}",
                            size_code(SymExpr(op_.type.dims[0]), parameters_), wait_text(overlap_))
              : "attention.start();\n";
    const auto attend = [&](std::string_view launched) {
      return fmt::format(
          "AttentionFew<Config, {}, {}> attention({{{}, {{{}, {}}}, {}, {}}}, shared);\n"
          "{}attention.run(y0);\n",
          memory_type(op_.type.dtype), launched, q, keys, values, first, last, start);
    };
    body_.globals += fmt::format(
        "SINTER_CALLED void attend_alone(AttentionShared<Config>& shared, {}) {{\n{}}}\n",
        parameters_of(group_, parameters_.size(), false), indented(attend("WithoutClusters")));
    const auto inputs =
        llvm::to_vector(llvm::seq<uint32_t>(0, static_cast<uint32_t>(group_.inputs.size())));
    const std::string alone =
        fmt::format("attend_alone(shared, {});\n", arguments_of(inputs, {0u}, parameters_.size()));
    body_.launch.threads = int64_t{attention_streams(lanes)} * lanes;
    // Keys on their way fill half of the registers that this leaves a thread.
    if (tile == 1 && dtype_info(op_.type.dtype).bits == 16)
      body_.resident_blocks = kResidentThreads / body_.launch.threads;
    body_.text = "__shared__ AttentionShared<Config> shared;\n";
    if (early) body_.text += "see_complete();\n";
    if (splits > 1 && device_.has.clusters) {
      body_.launch.cluster = splits;
      body_.launch.items_without_clusters = items_without_clusters(device_, body_.resident_blocks);
      body_.text += fmt::format("if (cluster_blocks() == 1) {{\n{}}} else {{\n{}}}\n",
                                indented(alone), indented(attend("InClusters")));
    } else {
      body_.text += alone;
    }
    body_.launch.items_per_row = kv_heads * (group / tile);
    return {};
  }

  Status sample() {
    SINTER_LET(logits, rows(0));
    std::string vectors;  // of one value a row
    for (size_t operand = 1; operand < op_.operands.size(); ++operand) {
      SINTER_LET(vector, pointer(operand));
      vectors += vector + ", ";
    }
    body_.includes = "#include \"kernels/sample/sample.cuh\"\n";
    body_.text = fmt::format("__shared__ SampleShared shared;\nsample({}, {}, {}y0, shared);\n",
                             logits, group_[op_.operands[0]].type.dims[1].constant(), vectors);
    body_.launch.threads = kSampleThreads;
    body_.resident_blocks =
        kResidentThreads / kSampleThreads;  // beside the product that it waits for
    return {};
  }

  const Graph& group_;
  llvm::ArrayRef<Symbol> symbols_;
  llvm::ArrayRef<SymbolId> parameters_;
  const DeviceDescription& device_;
  const Overlap& overlap_;
  const Op& op_;
  KernelBody body_;
  bool aligned_ = true;
};

}  // namespace

Result<KernelBody> emit_opaque(const Graph& group, llvm::ArrayRef<Symbol> symbols,
                               llvm::ArrayRef<SymbolId> parameters, const DeviceDescription& device,
                               const Overlap& overlap) {
  return OpaqueKernel(group, symbols, parameters, device, overlap).emit();
}

}  // namespace sinter
