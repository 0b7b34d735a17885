// Values of symbols for calls of entries: what an option or an input's shape tells of them.
#pragma once

#include <optional>

#include "frontends/files/tensor_file.h"
#include "ir/graph.h"

namespace sinter {

/// The known values of symbols in one call.
class KnownSizes {
 public:
  /// `module` outlives this.
  explicit KnownSizes(const Module& module) : module_(&module), known_(module.symbols.size()) {}

  /// Values by name, as options give them. Errors: a name that no symbol of `origin` has.
  Status bind(llvm::ArrayRef<std::pair<std::string, int64_t>> values, const std::string& origin);
  /// The extents of a tensor that is given for an input of this type. Errors, without a place: a
  /// tensor of another type, and a symbol with two values.
  Status bind(const TensorType& type, const FileTensor& tensor);

  struct Size {
    int64_t value = 0;
    std::string from;  // "--symbol", "tensor x"
  };
  llvm::ArrayRef<std::optional<Size>> known() const { return known_; }
  const Module& module() const { return *module_; }

 private:
  const Module* module_;
  std::vector<std::optional<Size>> known_;  // of each symbol
};

/// Values of all symbols for each call of a session, `calls[i]` of `entries[i]`. All calls have the
/// same values for symbols of states. One of which nothing is known is the least that is not below
/// `wanted`, as far as its range and bounds allow. Errors: values outside a symbol's range, and
/// calls that do not agree about a state.
Result<std::vector<std::vector<int64_t>>> session_sizes(llvm::ArrayRef<const Entry*> entries,
                                                        llvm::ArrayRef<KnownSizes> calls,
                                                        int64_t wanted);

}  // namespace sinter
