// mask_tiles: a warp for each tile of kernels/mask_tiles/mask_tiles.cuh.
#include <llvm/ADT/STLExtras.h>

#include <array>

#include "codegen/emission/config_text.h"
#include "codegen/emission/emit_context.h"
#include "codegen/emission/emit_index.h"
#include "codegen/emission/emit_scalar.h"
#include "codegen/emission/kernel_body.h"
#include "ir/attention_operands.h"
#include "ir/grouping.h"

namespace sinter {
namespace {

constexpr int64_t kMaskThreads = 128;

}  // namespace

Result<KernelBody> emit_mask_tiles(const EmitContext& context) {
  const Graph& group = context.group;
  const Op& op = context.anchor_op();
  const TensorType& mask = group[op.operands[0]].type;
  const auto place = mask_place(group, op.operands[0]);
  if (!place)
    return fail("mask_tiles reads a mask where it lies, but cannot address it", {}, {},
                ExitCode::internal_error);
  const size_t batch = mask.rank() - 3;
  const SymExpr sequences = volume(DimsRef(mask.dims).take_front(batch)), heads(mask.dims[batch]);
  const SymExpr tokens(mask.dims[batch + 1]), keys(mask.dims[batch + 2]);
  const int64_t tile_tokens = op.attrs.get<int64_t>(AttrName::tile_tokens);
  const int64_t tile_keys = op.attrs.get<int64_t>(AttrName::tile_keys);
  const bool aligned =
      place->key.is(1) &&
      llvm::all_of(std::array{place->offset, place->sequence, place->head, place->token},
                   [&](const SymExpr& step) { return step.divisor(context.symbols) % 8 == 0; });
  const auto code = [&](const SymExpr& e) { return size_code(e, context.parameters, false); };
  const std::string from = fmt::format("x{}", *input_of(group, op.operands[0]));

  KernelBody body;
  body.includes = "#include \"kernels/mask_tiles/mask_tiles.cuh\"\n";
  body.globals = ConfigText()
                     .type("Mask", fmt::format("MaskInMemory<{}, {}, MaskRows::own>",
                                               memory_type(mask.dtype), mask.dtype != DType::i1))
                     .constant("kTokens", tile_tokens)
                     .constant("kKeys", tile_keys)
                     .constant("kThreads", kMaskThreads)
                     .constant("kAligned", aligned)
                     .text() +
                 "\n";
  const std::string first =
      place->offset.is(0) ? from : from + " + " + size_code(place->offset, context.parameters);
  body.text =
      call_text("mask_tiles<Config>",
                {braced({first, code(place->sequence), code(place->head), code(place->token),
                         fmt::format("static_cast<int>({})", code(place->key))}),
                 braced({code(sequences), code(heads), code(tokens), code(keys),
                         code(op.type.dims[batch + 1]), code(op.type.dims[batch + 2])}),
                 "y0"});
  // At least the number of tiles, which is no polynomial of the extents.
  body.launch.rows =
      sequences * heads * (tokens + SymExpr(tile_tokens - 1)) * (keys + SymExpr(tile_keys - 1));
  body.launch.items_per_block = kMaskThreads / 32 * tile_tokens * tile_keys;
  body.launch.threads = kMaskThreads;
  body.resident_blocks = kThreadsOf64Registers / kMaskThreads;
  return body;
}

}  // namespace sinter
