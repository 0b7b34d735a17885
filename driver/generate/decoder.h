// A decoder-only language model on any device: sequences of tokens in, logits out.
#pragma once

#include "runtime/executable.h"

namespace sinter {

/// The inputs of one call of `prefill` or `decode`, and all symbol values.
struct DecoderCall {
  std::vector<HostTensor> inputs;
  std::vector<int64_t> symbol_values;
};

/// Which tokens of a call get logits (prefill only; decode has one token a sequence).
enum class Wanted : uint8_t { all, last_of_each };

/// An error if the program lacks a symbol that language models have: N, M, B, R or K.
Status require_decoder_symbols(const Program& program);

/// Tokens of the longest text that a plan of a language model takes: M's range, since the logits of
/// all tokens of one text may be wanted.
int64_t longest_text(llvm::ArrayRef<Symbol> symbols);

/// Cache rows for each of `sequences` sequences of up to `capacity` tokens. For several it is a
/// multiple of kSequenceStep, so that tiles of keys cut each of them alike, wherever it lies; but
/// for a plan whose R has no room for that, it is what R allows.
int64_t sequence_rows(llvm::ArrayRef<Symbol> symbols, int64_t sequences, int64_t capacity);

/// Packs the tokens that follow the first `lengths[s]` of each sequence; sequence s owns the cache
/// rows s * capacity .. (s + 1) * capacity - 1 (`capacity`: sequence_rows). Of a
/// prefill some lists may be empty, and have no last token then.
DecoderCall pack_sequences(std::string_view entry, llvm::ArrayRef<Symbol> symbols,
                           llvm::ArrayRef<std::vector<int32_t>> tokens,
                           llvm::ArrayRef<int64_t> lengths, int64_t capacity,
                           Wanted wanted = Wanted::all);

/// Calls the entries `prefill` and `decode` (see frontends/model/build_model.h) with sequences of
/// unequal length.
class Decoder {
 public:
  /// A decoder for `sequences` sequences of up to `capacity` tokens (rounded up to what the plan's
  /// symbols allow). An error if the program lacks the entries or has no room for these sequences.
  static Result<Decoder> create(std::shared_ptr<const Executable> executable, int64_t sequences,
                                int64_t capacity);

  /// Appends tokens to every sequence (one list per sequence, none empty) and returns the logits of
  /// all of them, [tokens in all, vocabulary], in order, or of the last of each sequence.
  Result<RunResult> prefill(llvm::ArrayRef<std::vector<int32_t>> tokens,
                            const CallOptions& options = {}, Wanted wanted = Wanted::all);
  /// Appends one token to every sequence; logits [sequences, vocabulary].
  Result<RunResult> decode(llvm::ArrayRef<int32_t> tokens, const CallOptions& options = {});

  /// Calls `entry`, prefill or decode, with one list of tokens per sequence.
  Result<RunResult> run(std::string_view entry, llvm::ArrayRef<std::vector<int32_t>> tokens,
                        const CallOptions& options, Wanted wanted);

  const Session& session() const { return *session_; }
  /// Cache rows of each sequence (sequence_rows).
  int64_t rows() const { return rows_; }
  /// Tokens of each sequence so far.
  llvm::ArrayRef<int64_t> lengths() const { return lengths_; }

 private:
  Decoder(std::shared_ptr<const Executable> executable, std::unique_ptr<Session> session,
          int64_t sequences, int64_t capacity, int64_t rows)
      : executable_(std::move(executable)),
        session_(std::move(session)),
        capacity_(capacity),
        rows_(rows),
        lengths_(sequences, 0) {}

  std::shared_ptr<const Executable> executable_;
  std::unique_ptr<Session> session_;
  int64_t capacity_, rows_;       // of each sequence
  std::vector<int64_t> lengths_;  // of the sequences so far
};

/// The index of the largest of the last row's `logits`; ties go to the smaller index.
int32_t greedy_token(const HostTensor& logits, int64_t row);

/// The least value of the symbol that is not below `value`; it may be above the symbol's range.
int64_t rounded_up(int64_t value, const Symbol& symbol);
/// Symbol values that are valid everywhere: each at its least, as far as bounds between symbols
/// allow.
std::vector<int64_t> min_symbol_values(llvm::ArrayRef<Symbol> symbols);
/// The same, each the least that is not below `wanted`, or its largest. `known`, if not empty, has
/// an item for each symbol; a value in it stays, be it valid or not.
std::vector<int64_t> symbol_values_near(llvm::ArrayRef<Symbol> symbols, int64_t wanted,
                                        llvm::ArrayRef<std::optional<int64_t>> known = {});

}  // namespace sinter
