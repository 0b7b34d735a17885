#include "codegen/emission/attention_text.h"

#include <llvm/ADT/STLExtras.h>

#include <array>

#include "codegen/emission/emit_index.h"
#include "codegen/emission/emit_scalar.h"
#include "ir/attention_dropout.h"
#include "ir/grouping.h"

namespace sinter {
namespace {

constexpr int64_t kMaskChunkBytes = 16;

tl::unexpected<Error> unaddressed(const Op& op, std::string_view what) {
  return fail(
      fmt::format("{} reads {} where they lie, but cannot address them", algorithm_name(op), what),
      {}, {}, ExitCode::internal_error);
}

}  // namespace

Result<std::string> AttentionText::queries() {
  const auto place = attention_queries(context_.group, op_);
  if (!place) return unaddressed(op_, "queries");
  note_alignment({place->offset, place->row});
  return fmt::format("{}, {}", first_element(0, place->offset), size(place->row));
}

Result<std::string> AttentionText::rows(size_t operand) {
  const auto place = attention_rows(context_.group, op_, operand);
  if (!place) return unaddressed(op_, "keys and values");
  note_alignment({place->offset, place->sequence, place->row, place->head});
  return fmt::format("{{{}, {}, {}, {}}}", first_element(operand, place->offset),
                     size(place->sequence), size(place->row), size(place->head));
}

Result<std::string> AttentionText::mask() const {
  SINTER_LET(mask, mask_alone());
  if (!op_.attrs.has(AttrName::dropout)) return mask;
  const auto seed = dropout_seed(context_.group, op_);
  if (!seed) return unaddressed(op_, "the seed of its dropout");
  return fmt::format("{{{}, {}}}", mask, first_element(op_.operands.size() - 1, seed->offset));
}
Result<std::string> AttentionText::mask_alone() const {
  if (!has_mask(op_)) return std::string("{}");
  SINTER_LET(mask, steps(mask_operand(op_)));
  if (!has_tiles()) return mask;
  SINTER_LET(tiles, steps(kMaskTilesOperand));
  return fmt::format("{{{}, {}}}", mask, tiles);
}

Result<std::string> AttentionText::steps(size_t operand) const {
  const auto place = attention_mask(context_.group, op_, operand);
  if (!place) return unaddressed(op_, "elements of the mask");
  return fmt::format("{{{}, {}, {}, {}, static_cast<int>({})}}",
                     first_element(operand, place->offset), size(place->sequence),
                     size(place->head), size(place->token), size(place->key));
}

std::string AttentionText::mask_type() const {
  if (!op_.attrs.has(AttrName::dropout)) return mask_type_alone();
  return fmt::format("MaskWithDropout<{}, {}>", mask_type_alone(),
                     dropout_threshold(op_.attrs.get<double>(AttrName::dropout)));
}
std::string AttentionText::mask_type_alone() const {
  if (!has_mask(op_)) return "NoMask";
  const std::string mask =
      fmt::format("MaskInMemory<{}, {}, MaskRows::{}>",
                  memory_type(context_.group[op_.operands[mask_operand(op_)]].type.dtype),
                  adds_mask(), mask_rows());
  return has_tiles() ? fmt::format("MaskWithTiles<{}>", mask) : mask;
}

std::string_view AttentionText::mask_rows() const {
  const auto place = attention_mask(context_.group, op_, mask_operand(op_));
  if (!place || place->token.is(0)) return "shared";
  const bool in_chunks =
      place->key.is(1) && context_.group[op_.operands[mask_operand(op_)]].type.dtype == DType::i1 &&
      llvm::all_of(std::array{place->offset, place->sequence, place->head, place->token,
                              SymExpr(attention_key_rows(context_.group, op_))},
                   [&](const SymExpr& step) {
                     return step.divisor(context_.symbols) % kMaskChunkBytes == 0;
                   });
  return in_chunks ? "own_in_chunks" : "own";
}

bool AttentionText::has_tiles() const {
  return !is_attention_gradient(op_) && operands_before_seed(op_) > kMaskTilesOperand;
}

bool AttentionText::adds_mask() const {
  return has_mask(op_) && context_.group[op_.operands[mask_operand(op_)]].type.dtype != DType::i1;
}

std::string AttentionText::size(const SymExpr& expression) const {
  return size_code(expression, context_.parameters, false);
}

std::string AttentionText::first_element(size_t operand, const SymExpr& offset) const {
  const std::string root = fmt::format("x{}", *input_of(context_.group, op_.operands[operand]));
  return offset.is(0) ? root : root + " + " + size_code(offset, context_.parameters);
}

void AttentionText::note_alignment(llvm::ArrayRef<SymExpr> places) {
  aligned_ = aligned_ && llvm::all_of(places, [&](const SymExpr& place) {
               return place.divisor(context_.symbols) % 8 == 0;
             });
}

void AttentionText::add_types(ConfigText& config) const {
  config.type("First", "PortOperand3").type("Last", "PortOperand4").type("Mask", mask_type());
}

void add_heads(const AttentionHeads& heads, ConfigText& config) {
  config.constant("kHeads", heads.count)
      .constant("kKvHeads", heads.kv_count)
      .constant("kWidth", heads.width)
      .constant("kValueWidth", heads.value_width);
}

void add_sink(const Op& attention, ConfigText& config) {
  if (const int64_t sink = attention_sink(attention.attrs)) config.constant("kSink", sink);
}

}  // namespace sinter
