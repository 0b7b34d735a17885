// Where the tensors that `file` ops name come from: the border between frontends and runtime.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "ir/types.h"

namespace sinter {

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
  /// Fills `out` (exactly the tensor's bytes, little-endian, row-major).
  virtual Status read(std::string_view name, std::span<std::byte> out) const = 0;
};

}  // namespace sinter
