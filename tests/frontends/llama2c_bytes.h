// llama2.c files for tests.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace sinter::testing {

/// A file of `version` (0: without magic number and flag) with `floats` floats after its header;
/// each says its place. `fields`: dim, hidden_dim, n_layers, n_heads, n_kv_heads, vocab_size,
/// seq_len. `shared`: the classifier is the embedding (from version 1 on).
inline std::string llama2c_bytes(const std::array<int32_t, 7>& fields, int32_t version,
                                 uint8_t shared, size_t floats) {
  std::string bytes;
  const auto put = [&](const auto& value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  if (version > 0) {
    put(uint32_t{0x616b3432});
    put(version);
  }
  put(fields);
  if (version > 0) {
    put(shared);
    bytes.resize(256, '\0');
  }
  for (size_t i = 0; i < floats; ++i) put(static_cast<float>(i));
  return bytes;
}

}  // namespace sinter::testing
