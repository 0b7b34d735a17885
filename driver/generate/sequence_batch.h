// Sequences that come and go and decode together.
#pragma once

#include "driver/generate/decode_steps.h"

namespace sinter {

/// Sequences of a decoder-only model, each in a place of the caches. One step gives every sequence
/// its next token. A sequence that is removed leaves its place to another. What a sequence is
/// continued by does not depend on its place. It depends on the other sequences only through the
/// number that decode in a step: by the variant of `decode`, and above eight by the products of a
/// library (docs/design/generating.md, Bits).
class SequenceBatch {
 public:
  using Id = int64_t;
  struct Token {
    Id sequence;
    int32_t token;
  };

  /// `places` sequences at a time, each of up to `capacity` tokens, prompt and continuation
  /// (rounded up to what the plan allows). An error if the plan has no room for these sequences.
  static Result<std::unique_ptr<SequenceBatch>> create(std::shared_ptr<const Executable> executable,
                                                       int64_t places, int64_t capacity,
                                                       const PrefillOptions& prefill = {});
  /// Bytes of the caches for all places.
  static int64_t cache_bytes(const Program& program, int64_t places, int64_t capacity);

  /// Feeds a prompt into a free place. Its first token comes with the next step. Errors: no place
  /// is free; a prompt without tokens, or with more than the capacity. A cancelled prompt leaves
  /// the place free.
  Result<Id> add(llvm::ArrayRef<int32_t> prompt, const Sampling& sampling = {});
  /// Frees the sequence's place. An error if there is no such sequence.
  Status remove(Id sequence);
  /// One more token of each sequence, in the order in which they were added. An error, which leaves
  /// all sequences as they are, if one has no room for its next token or logits that are not
  /// finite: remove it.
  Result<std::vector<Token>> step();

  int64_t places() const { return static_cast<int64_t>(taken_.size()); }
  int64_t free_places() const { return places() - static_cast<int64_t>(sequences_.size()); }
  int64_t capacity() const { return capacity_; }

 private:
  struct Sequence {
    Id id;
    size_t place;
    int64_t length;  // tokens that are fed
    StepRow row;     // of its next step; `token` and `step` are of the last one
    bool is_new;     // its first token is chosen already, and not given yet
  };

  SequenceBatch(std::shared_ptr<const Executable> executable, std::unique_ptr<Session> session,
                int64_t places, int64_t capacity, int64_t place_rows, const PrefillOptions& prefill)
      : executable_(std::move(executable)),
        session_(std::move(session)),
        capacity_(capacity),
        place_rows_(place_rows),
        prefill_(prefill),
        taken_(static_cast<size_t>(places), false) {}

  Result<HostTensor> feed(llvm::ArrayRef<int32_t> prompt, size_t place);

  std::shared_ptr<const Executable> executable_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<DecodeSteps> steps_;
  int64_t capacity_;    // tokens of a sequence, at most
  int64_t place_rows_;  // of the caches (sequence_rows)
  PrefillOptions prefill_;
  std::vector<bool> taken_;  // by place
  std::vector<Sequence> sequences_;
  Id next_ = 0;
};

}  // namespace sinter
