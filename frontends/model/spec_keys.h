// The keys of a model specification, a row each. The reader (spec_json.cpp) takes these and no
// others; docs/spec.md and docs/schemas/spec.schema.json are made from the rows.
#pragma once

#include <llvm/ADT/ArrayRef.h>

#include <cstdint>
#include <string_view>

namespace sinter {

enum class SpecValue : uint8_t {
  version,  // the number 1
  text,
  choice,  // one of SpecKey::choices
  flag,    // true or false
  size,    // an integer of 1 .. kLargestSize
  count,   // the same, or 0
  number,  // above 0
  flags,   // lists
  numbers,
  ids,
  rope,     // an object with rope_keys(), or null
  experts,  // the same with experts_keys()
};

struct SpecKey {
  std::string_view name;
  SpecValue value;
  /// JSON; or words, where it depends on other keys; empty: the key is required.
  std::string_view fallback;
  std::string_view meaning;
  std::string_view choices = {};   // separated by ", "
  std::string_view scalings = {};  // of rope: the scalings that take the key; empty: all
};

llvm::ArrayRef<SpecKey> spec_keys();
/// The keys of the objects `rope` and `local_rope`.
llvm::ArrayRef<SpecKey> rope_keys();
llvm::ArrayRef<SpecKey> experts_keys();

}  // namespace sinter
