#include "codegen/lowering/emit.h"

#include <xxhash.h>

#include "codegen/emission/emit_scalar.h"
#include "codegen/emission/emit_scope.h"
#include "codegen/lowering/emit_body.h"
#include "codegen/lowering/extract.h"
#include "codegen/lowering/launch_order.h"
#include "ir/grouping.h"
#include "ir/op_roles.h"
#include "kernels/registry.h"
#include "plan/kernel_text.h"

namespace sinter {
namespace {

constexpr size_t kLongestRole = 40;  // characters

/// The names of the ops that compute, joined, as far as there is room: "add_rms_norm".
std::string role_of(const Graph& group) {
  std::string role;
  std::string_view last;
  for (const Op& op : group.ops()) {
    const std::string_view name = op.kind == OpKind::kv_append ? "append" : algorithm_name(op);
    if (!computes(op) || name == last || (places_part(op) && !role.empty())) continue;
    if (role.size() + 1 + name.size() > kLongestRole) break;
    role += (role.empty() ? "" : "_") + std::string(name);
    last = name;
  }
  return role.empty() ? "copy" : role;
}

}  // namespace

std::optional<Anchor> find_anchor(const Graph& group) {
  const std::optional<ValueId> id = anchor_of(group);
  if (!id) return std::nullopt;
  Anchor anchor{*id, {}, {}};
  const Op& op = group[*id];
  const KernelFamily& family = *anchored_by(op);
  const Ports ports = family.ports ? family.ports(group, op) : Ports{};
  for (uint32_t k = 0; k < op.operands.size(); ++k)
    if (ports.operand(k).port == Port::element) anchor.element_operands.push_back(k);
  for (uint32_t i = 0; i < group.size(); ++i)
    if (i != id->index && anchored_by(group.ops()[i]) != nullptr)
      anchor.companions.push_back(ValueId{i});
  return anchor;
}

Result<KernelBody> emit_body(const EmitContext& context) {
  const KernelFamily& family = context.anchor ? *anchored_by(context.anchor_op())
                                              : family_of_rows(context.group, context.symbols);
  EmitKernel* const* emit = std::get_if<EmitKernel*>(&family.make);
  if (!emit)
    return fail(fmt::format("family {} makes a step of a plan, no kernel", family.name), {},
                "compute the ops in separate steps", ExitCode::internal_error);
  return (*emit)(context);
}

Result<Kernel> emit_kernel(const Graph& group, uint32_t prefix_rank, llvm::ArrayRef<Symbol> symbols,
                           const DeviceDescription& device) {
  return emit_kernel(group, {KernelPart{prefix_rank, {}}}, symbols, device);
}

Result<Kernel> emit_kernel(const Graph& group, llvm::ArrayRef<KernelPart> parts,
                           llvm::ArrayRef<Symbol> symbols, const DeviceDescription& device,
                           const std::optional<Overlap>& wanted, const TunedForms& forms,
                           llvm::ArrayRef<InPlace> in_place) {
  Kernel kernel;
  kernel.group = group;
  set_canonical_names(kernel.group);
  kernel.symbols = symbols_of(kernel.group);
  for (uint32_t k = 0; k < kernel.group.outputs.size(); ++k)
    if (writes_state(kernel.group[kernel.group.outputs[k]])) kernel.appends.push_back(k);

  Overlap& overlap = kernel.overlap;
  if (wanted)
    overlap = *wanted;
  else
    overlap.waits = overlaps_launches(kernel.group, symbols);
  if (!overlap.waits) kernel.in_place = in_place.vec();
  const Overlap asked = overlap;
  const EmitContext context{.group = kernel.group,
                            .prefix_rank = parts[0].prefix_rank,
                            .symbols = symbols,
                            .parameters = kernel.symbols,
                            .device = device,
                            .overlap = asked,
                            .forms = forms,
                            .anchor = find_anchor(kernel.group)};
  SINTER_LET(body, parts.size() == 1 ? emit_body(context) : emit_parts(context, parts));
  overlap.early_inputs = body.early_inputs;
  kernel.launch = body.launch;
  kernel.tensor_maps = body.tensor_maps;
  kernel.minimum_arch = body.minimum_arch;
  if (kernel.launch.cluster > 1)
    kernel.minimum_arch = std::max(kernel.minimum_arch, kFirstArchWithClusters);
  const std::string role = role_of(kernel.group);
  const std::string comment = group_comment(kernel, symbols);
  const std::string definitions = "#include \"kernels/common/launch.cuh\"\n" + body.includes +
                                  "using namespace sinter;\n\n" + body.globals;
  std::string text =
      overlap.waits && !overlap.triggers_after_wait ? "griddepcontrol_launch_dependents();\n" : "";
  text += body.before_wait;
  if (overlap.waits && !body.waits) text += wait_text(overlap);
  const std::string tail =
      fmt::format("({}) {{\n{}}}\n",
                  parameters_of(kernel.group, kernel.symbols.size(), !overlap.waits,
                                kernel.tensor_maps.size(), kernel.in_place),
                  indented(text + body.text));
  const bool has_residency =
      body.resident_blocks > 1 || body.moves_registers || body.takes_registers;
  const std::string function = function_head(body.launch, has_residency ? body.resident_blocks : 0);
  // Kernels of other symbols are other kernels, even with the same text.
  std::string hashed = role + '\n' + comment + definitions + function + tail;
  for (SymbolId symbol : kernel.symbols) hashed += fmt::format("{} ", symbol.index);
  kernel.name = fmt::format("{}_{:08x}", role,
                            static_cast<uint32_t>(XXH3_64bits(hashed.data(), hashed.size())));
  kernel.source =
      comment + launch_comment(kernel, symbols) + definitions + function + kernel.name + tail;
  return kernel;
}

}  // namespace sinter
