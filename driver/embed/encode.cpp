#include "driver/embed/encode.h"

namespace sinter {

DecoderCall pack_texts(const ModelSpec& spec, llvm::ArrayRef<Symbol> symbols,
                       llvm::ArrayRef<std::vector<int32_t>> tokens) {
  std::vector<int32_t> ids, pos, first, last;
  for (const auto& text : tokens) {
    const auto begin = static_cast<int32_t>(ids.size());
    const auto length = static_cast<int32_t>(text.size());
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

Result<RunResult> encode(const ModelSpec& spec, const Model& model,
                         llvm::ArrayRef<std::vector<int32_t>> tokens, const CallOptions& options) {
  const Program& program = model.program();
  SINTER_TRY(encode_entry(program));
  const DecoderCall call = pack_texts(spec, program.symbols, tokens);
  SINTER_TRY(check_symbol_values(program.symbols, call.symbol_values));
  SINTER_LET(session, model.new_session(call.symbol_values));
  return session->run("encode", call.symbol_values, addresses_of(call.inputs), options);
}

}  // namespace sinter
