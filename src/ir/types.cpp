#include "ir/types.h"

namespace sinter {

std::string_view to_string(DType dtype) {
  switch (dtype) {
#define X(name, bytes) \
  case DType::name:    \
    return #name;
    SINTER_DTYPES(X)
#undef X
  }
  SINTER_CHECK(false, "dtype");
}

std::optional<DType> parse_dtype(std::string_view text) {
#define X(name, bytes) \
  if (text == #name) return DType::name;
  SINTER_DTYPES(X)
#undef X
  return std::nullopt;
}

int64_t size_bytes(DType dtype) {
  switch (dtype) {
#define X(name, bytes) \
  case DType::name:    \
    return bytes;
    SINTER_DTYPES(X)
#undef X
  }
  SINTER_CHECK(false, "dtype");
}

std::string to_string(Dim dim, llvm::ArrayRef<Symbol> symbols) {
  if (dim.is_constant()) return fmt::format("{}", dim.constant());
  return symbols[dim.symbol().index].name;
}

std::string to_string(const TensorType& type, llvm::ArrayRef<Symbol> symbols) {
  std::string text(to_string(type.dtype));
  text += '[';
  for (size_t i = 0; i < type.dims.size(); ++i)
    text += (i ? ", " : "") + to_string(type.dims[i], symbols);
  return text + ']';
}

}  // namespace sinter
