// The values of a plan's symbols in one call: what the session, the caller and the shapes of inputs
// say.
#pragma once

#include "driver/calls/call_session.h"

namespace sinter {

/// Borrows the program and the entry's variants.
class CallSymbols {
 public:
  CallSymbols(const Program& program, llvm::ArrayRef<EntryPlan> variants);

  /// `from` says who: "the session's states", "input x". An error where another value is known, and
  /// for one outside the symbol's range.
  Status set(size_t symbol, int64_t value, const std::string& from);
  /// The extents of a tensor for a value of this type; its rank and constant extents fit.
  Status set(const TensorType& type, llvm::ArrayRef<int64_t> dims, const std::string& from);

  /// The extents of a type; an error that names a symbol which is not known.
  Result<std::vector<int64_t>> dims(const TensorType& type) const;
  /// Valid values of all symbols: those that a variant uses are known, others are as large as they
  /// can be. Errors: a symbol that is not known, a value outside its range.
  Result<std::vector<int64_t>> all() const;

 private:
  struct Value {
    int64_t value = 0;
    std::string from;
  };
  tl::unexpected<Error> unknown(size_t symbol) const;

  const Program& program_;
  llvm::ArrayRef<EntryPlan> variants_;
  std::vector<std::optional<Value>> known_;  // of each symbol
};

}  // namespace sinter
