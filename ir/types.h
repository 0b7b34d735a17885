// Symbolic dimensions and tensor types.
#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/SmallVector.h>

#include <cstdint>
#include <optional>
#include <string>

#include "ir/dtype.h"

namespace sinter {

/// Index into Module::symbols.
struct SymbolId {
  uint32_t index = 0;
  friend auto operator<=>(SymbolId, SymbolId) = default;
};

/// A size that is known when a step is launched, not when it is compiled.
struct Symbol {
  std::string name;
  int64_t low = 1;                       // smallest value, >= 0
  int64_t high = 1;                      // largest value
  int64_t multiple = 1;                  // every value is divisible by this
  std::optional<SymbolId> at_most = {};  // an earlier symbol that is never smaller
};

/// Some of a symbol's values: those from `low` to `high`.
struct SymbolRange {
  SymbolId symbol;
  int64_t low = 0, high = 0;

  bool contains(int64_t value) const { return value >= low && value <= high; }
  friend bool operator==(const SymbolRange&, const SymbolRange&) = default;
};

/// One extent of a tensor: a constant >= 0 or a symbol.
class Dim {
 public:
  Dim(int64_t constant = 1) : value_(constant) { SINTER_CHECK(constant >= 0, "{}", constant); }
  Dim(SymbolId symbol) : value_(-1 - static_cast<int64_t>(symbol.index)) {}

  bool is_constant() const { return value_ >= 0; }
  bool is(int64_t constant) const { return value_ == constant && constant >= 0; }
  int64_t constant() const {
    SINTER_CHECK(is_constant(), "symbolic dim");
    return value_;
  }
  SymbolId symbol() const {
    SINTER_CHECK(!is_constant(), "constant dim");
    return SymbolId{static_cast<uint32_t>(-1 - value_)};
  }
  friend auto operator<=>(Dim, Dim) = default;
  size_t hash() const { return static_cast<size_t>(value_ * 0x9E3779B97F4A7C15ULL); }

 private:
  int64_t value_;
};

using Dims = llvm::SmallVector<Dim, 4>;
using DimsRef = llvm::ArrayRef<Dim>;

/// Element type and extents; elements are stored row-major, densely. Rank 0 is a scalar.
struct TensorType {
  DType dtype = DType::f32;
  Dims dims;

  size_t rank() const { return dims.size(); }
  friend bool operator==(const TensorType&, const TensorType&) = default;
};

/// A value in the symbol's own range.
Status check_symbol_value(const Symbol& symbol, int64_t value);
/// One value per symbol, each in its range; the error names the symbol and both values.
Status check_symbol_values(llvm::ArrayRef<Symbol> symbols, llvm::ArrayRef<int64_t> values);

/// "f16[N, 4096]", symbols by name.
std::string to_string(const TensorType& type, llvm::ArrayRef<Symbol> symbols);
std::string to_string(Dim dim, llvm::ArrayRef<Symbol> symbols);

}  // namespace sinter
