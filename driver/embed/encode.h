// An encoder on any device: sequences of tokens of unequal length in, the last hidden state out.
#pragma once

#include "driver/generate/decoder.h"
#include "frontends/model/model_spec.h"

namespace sinter {

/// The row at which a text of `length` tokens begins, where the rows before `row` are taken: that
/// row. In an invariant plan it is the first one at which the text has the bits of row 0
/// (kernels/tiled_attention/order.h, kernels/float_attention/order.h): a text within 64 rows, the
/// smallest tile of keys, begins at a step of 16 keys; a longer one at a tile of 128.
int64_t text_begin(int64_t row, int64_t length, bool invariant);
/// The rows of a call with texts of these lengths, in order.
int64_t packed_rows(llvm::ArrayRef<int64_t> lengths, bool invariant);

/// The inputs of one call of `encode` (see frontends/model/build_model.h) with these sequences, all
/// of token type 0, and all symbol values. Each begins at its text_begin(); a row between two is
/// token 0, which sees itself alone.
DecoderCall pack_texts(const ModelSpec& spec, llvm::ArrayRef<Symbol> symbols,
                       llvm::ArrayRef<std::vector<int32_t>> tokens, bool invariant = false);

/// The entry `encode`; an error where the plan has none.
Result<const EntryPlan*> encode_entry(const Program& program);

/// One call; its first output is last_hidden_state [tokens in all, hidden], without rows between
/// texts. The tokens must be in the vocabulary; an error if the call has more rows than the model
/// has positions, or none.
Result<RunResult> encode(const ModelSpec& spec, const Executable& executable,
                         llvm::ArrayRef<std::vector<int32_t>> tokens,
                         const CallOptions& options = {});

}  // namespace sinter
