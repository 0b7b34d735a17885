#include "driver/embed/encode.h"

#include <algorithm>

#include "frontends/model/build_model.h"

namespace sinter {
namespace {

constexpr int64_t kKeyStep = 16, kLeastKeyTile = 64;

int64_t up_to(int64_t step, int64_t row) { return (row + step - 1) / step * step; }

/// Removes the rows that are no text's.
void leave_texts(HostTensor& rows, llvm::ArrayRef<std::vector<int32_t>> tokens) {
  const size_t row_bytes = rows.bytes.size() / static_cast<size_t>(rows.dims[0]);
  int64_t from = 0, to = 0;
  for (const auto& text : tokens) {
    const auto length = static_cast<int64_t>(text.size());
    from = text_begin(from, length, true);
    std::copy_n(rows.bytes.data() + static_cast<size_t>(from) * row_bytes, text.size() * row_bytes,
                rows.bytes.data() + static_cast<size_t>(to) * row_bytes);
    from += length, to += length;
  }
  rows.dims[0] = to;
  rows.bytes.resize(static_cast<size_t>(to) * row_bytes);
}

}  // namespace

int64_t text_begin(int64_t row, int64_t length, bool invariant) {
  if (!invariant) return row;
  if (length > kLeastKeyTile) return up_to(kSequenceStep, row);
  const int64_t begin = up_to(kKeyStep, row);
  return begin % kLeastKeyTile + length <= kLeastKeyTile ? begin : up_to(kLeastKeyTile, row);
}

int64_t packed_rows(llvm::ArrayRef<int64_t> lengths, bool invariant) {
  int64_t rows = 0;
  for (const int64_t length : lengths) rows = text_begin(rows, length, invariant) + length;
  return rows;
}

DecoderCall pack_texts(const ModelSpec& spec, llvm::ArrayRef<Symbol> symbols,
                       llvm::ArrayRef<std::vector<int32_t>> tokens, bool invariant) {
  std::vector<int32_t> ids, pos, first, last;
  for (const auto& text : tokens) {
    const auto length = static_cast<int32_t>(text.size());
    const auto begin =
        static_cast<int32_t>(text_begin(static_cast<int64_t>(ids.size()), length, invariant));
    for (auto row = static_cast<int32_t>(ids.size()); row < begin; ++row) {
      for (auto* zeros : {&ids, &pos}) zeros->push_back(0);
      for (auto* own : {&first, &last}) own->push_back(row);
    }
    for (int32_t i = 0; i < length; ++i) {
      ids.push_back(text[static_cast<size_t>(i)]);
      pos.push_back(i);
      first.push_back(begin);
      last.push_back(begin + length - 1);
    }
  }
  DecoderCall call{{}, min_symbol_values(symbols)};
  call.symbol_values[static_cast<size_t>(find_symbol(symbols, "N"))] =
      static_cast<int64_t>(ids.size());
  const std::vector<int32_t> types(ids.size(), 0);
  call.inputs = {i32_tensor(ids), i32_tensor(pos)};
  if (spec.token_types != 0) call.inputs.push_back(i32_tensor(types));
  call.inputs.push_back(i32_tensor(first));
  call.inputs.push_back(i32_tensor(last));
  return call;
}

Result<const EntryPlan*> encode_entry(const Program& program) {
  if (const EntryPlan* entry = program.find_entry("encode")) return entry;
  return fail("the plan has no entry encode", program.name, "give an encoder, such as BERT");
}

Result<RunResult> encode(const ModelSpec& spec, const Executable& executable,
                         llvm::ArrayRef<std::vector<int32_t>> tokens, const CallOptions& options) {
  const Program& program = executable.program();
  SINTER_TRY(encode_entry(program));
  const DecoderCall call = pack_texts(spec, program.symbols, tokens, program.invariant);
  SINTER_TRY(check_symbol_values(program.symbols, call.symbol_values));
  SINTER_LET(session, executable.new_session(call.symbol_values));
  SINTER_LET(result,
             session->run("encode", call.symbol_values, addresses_of(call.inputs), options));
  if (program.invariant) leave_texts(result.outputs[0], tokens);
  return std::move(result);
}

}  // namespace sinter
