// The kernel of a group around a caller's op. Accessors of the operands and of the result hold the
// text of prologue and epilogue; the caller's function is a template over them:
//
//   struct PortMemory { const f16* x0; const f16* x1; f16* y0; long long n0; };
//   struct SinterCustom : CustomBlock { long long dims(int operand, int axis) const { ... } ... };
//   struct PortOperand0 : PortMemory { ... };               prologue (element_ports.h)
//   struct PortResult : PortMemory { ... };                 epilogue
//   #line 1 "acme.rms_norm"
//   template <typename X, ...> __device__ void acme_rms_norm(X x, ...) { ... }
//   ... {
//     const PortMemory memory{x0, x1, y0, n0};
//     const SinterCustom at{{blockIdx.x, n0, nullptr}, n0};
//     acme_rms_norm(PortOperand0{memory}, CustomOperand<f16>{x1}, PortResult{memory}, at);
//   }
//
// Values of the group that do not need the result and leave it are computed once more, by all
// blocks, each a share of the elements.
#include <llvm/ADT/STLExtras.h>

#include "codegen/emission/element_ports.h"
#include "codegen/emission/emit_index.h"
#include "codegen/emission/emit_scalar.h"
#include "codegen/emission/emit_scope.h"
#include "codegen/emission/kernel_body.h"
#include "ir/contraction.h"
#include "kernels/custom/parts.h"

namespace sinter {
namespace {

/// "-1.5", a double that a compiler reads back as it is.
std::string double_literal(double value) {
  std::string text = fmt::format("{:.17g}", value);
  if (text.find_first_of(".e") == text.npos) text += ".0";
  return text;
}

class CustomKernel {
 public:
  explicit CustomKernel(const EmitContext& context)
      : context_(context), group_(context.group), record_(custom_op_of(context.anchor_op())) {}

  Result<KernelBody> emit() {
    SINTER_TRY(check_device());
    SINTER_LET(ports, emit_ports(context_, record_.threads));
    std::string arguments;
    for (uint32_t k = 0; k < op().operands.size(); ++k) {
      SINTER_LET(argument, operand(k));
      arguments += argument + ", ";
    }
    // The header includes what the ports need.
    body_.includes += "#include \"kernels/custom/custom.cuh\"\n";
    body_.globals = ports.memory + block() + ports.accessors +
                    fmt::format("#line 1 \"{}\"\n{}\n#line 1 \"kernel of {}\"\n", record_.name,
                                record_.source, record_.name) +
                    ports.store_globals;
    const bool shared = record_.shared_bytes > 0;
    body_.text = shared ? "extern __shared__ __align__(128) unsigned char shared_memory[];\n" : "";
    body_.text += ports.memory_value;
    body_.text += fmt::format(
        "const SinterCustom at{{{{blockIdx.x, {}, {}}}{}}};\n{}({}PortResult{{memory}}, at);\n",
        size_code(rows(), context_.parameters, false), shared ? "shared_memory" : "nullptr",
        symbol_arguments(), record_.function, arguments);
    body_.text += ports.stores;
    body_.launch.rows = rows();
    body_.launch.threads = record_.threads;
    body_.launch.shared_bytes = record_.shared_bytes;
    return std::move(body_);
  }

 private:
  const Op& op() const { return context_.anchor_op(); }
  SymExpr rows() const { return custom_rows(op()); }

  Status check_device() const {
    const DeviceDescription& device = context_.device;
    if (record_.shared_bytes <= device.max_shared_bytes &&
        record_.threads <= device.max_threads_per_block)
      return {};
    return fail(fmt::format("{} threads and {} bytes of shared memory in a block, {} has {} and {}",
                            record_.threads, record_.shared_bytes, device.name,
                            device.max_threads_per_block, device.max_shared_bytes),
                "custom op " + record_.name, "register it with smaller blocks");
  }

  /// "long long n0; long long n1; ", and what gives them their values: ", n0, n1".
  std::string symbol_members() const {
    std::string text;
    for (size_t k = 0; k < context_.parameters.size(); ++k)
      text += fmt::format("  long long n{};\n", k);
    return text;
  }
  std::string symbol_arguments() const {
    std::string text;
    for (size_t k = 0; k < context_.parameters.size(); ++k) text += fmt::format(", n{}", k);
    return text;
  }
  /// "    case 17: return n0;\n" for each axis, from `first` on.
  std::string extent_cases(const Dims& dims, size_t first) const {
    std::string text;
    for (size_t axis = 0; axis < dims.size(); ++axis)
      text += fmt::format("      case {}: return {};\n", first + axis,
                          size_code(SymExpr(dims[axis]), context_.parameters, false));
    return text;
  }
  static std::string choice(std::string_view head, std::string_view of, const std::string& cases) {
    return fmt::format(
        "  SINTER_DEVICE {} const {{\n    switch ({}) {{\n{}      default: return 0;\n    }}\n  "
        "}}\n",
        head, of, cases);
  }

  /// The definition of SinterCustom.
  std::string block() const {
    std::string extents, numbers;
    for (size_t k = 0; k < op().operands.size(); ++k)
      extents += extent_cases(group_[op().operands[k]].type.dims, k * kMaxCustomRank);
    if (const auto* given = op().attrs.find(AttrName::numbers))
      for (const auto& [i, number] : llvm::enumerate(std::get<std::vector<double>>(*given)))
        numbers += fmt::format("      case {}: return {};\n", i, double_literal(number));
    return fmt::format(
        "struct SinterCustom : CustomBlock {{\n{}{}{}{}}};\n", symbol_members(),
        choice("long long dims(int operand, int axis)",
               fmt::format("operand * {} + axis", kMaxCustomRank), extents),
        choice("long long result_dims(int axis)", "axis", extent_cases(op().type.dims, 0)),
        choice("double number(int i)", "i", numbers));
  }

  /// The argument for an operand.
  Result<std::string> operand(uint32_t k) const {
    if (llvm::is_contained(context_.anchor->element_operands, k))
      return fmt::format("PortOperand{}{{memory}}", k);
    const ValueId id = op().operands[k];
    const std::optional<uint32_t> input = input_of(group_, id);
    if (!input || !is_dense(group_, id))
      return fail(fmt::format("closed operand {} of a custom op does not stand in memory", k),
                  "custom op " + record_.name, "compute the ops in separate kernels",
                  ExitCode::internal_error);
    return fmt::format("CustomOperand<{}>{{x{}}}", memory_type(group_[id].type.dtype), *input);
  }

  const EmitContext& context_;
  const Graph& group_;
  const CustomOp& record_;
  KernelBody body_;
};

}  // namespace

Result<KernelBody> emit_custom(const EmitContext& context) { return CustomKernel(context).emit(); }

}  // namespace sinter
