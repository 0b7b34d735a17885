// Doors to the readers of untrusted files, for tests and fuzzers that break such files: each reads
// bytes as one kind of file and uses all that it read.
#pragma once

#include <llvm/ADT/ArrayRef.h>

#include <string>
#include <string_view>
#include <vector>

#include "ir/error.h"

namespace sinter::fuzz {

struct Outcome {
  /// A text of all that was read, which tells two results apart; the error if it was refused.
  Result<std::string> read;
  /// A promise that the reader broke: an error of more than one line or of another kind than bad
  /// input, text that is not UTF-8, a printed module that does not parse. Empty if it kept all.
  std::string broken;
};

struct Target {
  const char* name;
  Outcome (*read)(std::string_view bytes);
  /// Small valid files of the kind, the same in every run.
  std::vector<std::string> (*seeds)();
  /// How much of a valid file says what it holds; the rest is plain data.
  size_t (*header_bytes)(std::string_view file);
};

llvm::ArrayRef<Target> targets();
const Target* find_target(std::string_view name);

}  // namespace sinter::fuzz
