// Metadata of one architecture, checked for their types.
#pragma once

#include "frontends/gguf/gguf_file.h"

namespace sinter {

/// Reads "ARCHITECTURE.key"; an error names the key and what it is. Borrows the file.
class GgufMetadata {
 public:
  GgufMetadata(const GgufFile& file, std::string_view architecture)
      : file_(file), prefix_(fmt::format("{}.", architecture)) {}

  const std::string& prefix() const { return prefix_; }
  /// Null: the file lacks it.
  const GgufValue* find(std::string_view key) const {
    return file_.find(prefix_ + std::string(key));
  }
  Result<int64_t> integer(std::string_view key) const;
  /// Also of an array with one number for each layer, where all are equal.
  Result<int64_t> integer_or(std::string_view key, int64_t fallback) const;
  Result<double> number_or(std::string_view key, double fallback) const;
  Result<std::string> text_or(std::string_view key, std::string fallback) const;
  tl::unexpected<Error> refuse(std::string_view key, std::string_view what) const;

 private:
  const GgufFile& file_;
  std::string prefix_;
};

/// A float32 as the double that the same digits mean: 1e-05 of 9.99999975e-06.
double shortest_double(double value);

}  // namespace sinter
