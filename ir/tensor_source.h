// Where the tensors that `file` ops name come from: the border between frontends and runtime.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "ir/types.h"

namespace sinter {

/// A tensor that a source finds as `found` is read as `wanted`, perhaps as i32 instead of i64.
inline bool reads_as(const TensorType& found, const TensorType& wanted) {
  const bool narrows = found.dtype == DType::i64 && wanted.dtype == DType::i32;
  return found == wanted || (narrows && found.dims == wanted.dims);
}

class TensorSource {
 public:
  virtual ~TensorSource() = default;
  /// Type of a tensor (constant dims), or nullopt if there is none of that name.
  virtual std::optional<TensorType> find(std::string_view name) const = 0;
  /// Names of all tensors, whatever their element type; empty if the source cannot list them.
  virtual std::vector<std::string> names() const { return {}; }
  /// Paths of the files that it reads, in a fixed order; empty if it reads none.
  virtual std::vector<std::string> files() const { return {}; }
  /// Why find() has nothing under this name, for the caller to report.
  virtual Error missing(std::string_view name) const {
    return Error{fmt::format("no tensor named \"{}\"", printable(name)), {}, {}};
  }
  /// Fills `out` (exactly the tensor's bytes, little-endian, row-major). An i64 tensor of files is
  /// also read into half as many bytes, as i32: an error where a value does not fit.
  virtual Status read(std::string_view name, std::span<std::byte> out) const = 0;
};

}  // namespace sinter
