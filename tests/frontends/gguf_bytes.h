// Bytes of GGUF files, right ones and broken ones.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sinter {

/// A number in little-endian bytes.
template <typename T>
std::string bytes_of_number(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

/// Builds the bytes of a file. Offsets of tensors are the right ones unless they are given.
class GgufBytes {
 public:
  explicit GgufBytes(uint32_t version = 3, uint64_t alignment = 32)
      : version_(version), alignment_(alignment) {}

  static std::string text(std::string_view text) {
    return bytes_of_number<uint64_t>(text.size()) + std::string(text);
  }

  /// A key with the bytes of its value, of the type with this number.
  GgufBytes& key(std::string_view name, uint32_t type, std::string_view value) {
    keys_ += text(name) + bytes_of_number(type) + std::string(value);
    ++key_count_;
    return *this;
  }
  GgufBytes& string(std::string_view name, std::string_view value) {
    return key(name, 8, text(value));
  }
  template <typename T>
  GgufBytes& number(std::string_view name, uint32_t type, T value) {
    return key(name, type, bytes_of_number(value));
  }
  /// An array that says that it has `count` elements of a type.
  GgufBytes& array(std::string_view name, uint32_t type, uint64_t count,
                   std::string_view elements) {
    return key(name, 9, bytes_of_number(type) + bytes_of_number(count) + std::string(elements));
  }

  /// A tensor with the file's order of axes, `bytes` long; each byte is the tensor's number.
  GgufBytes& tensor(std::string_view name, uint32_t type, std::vector<uint64_t> dims, size_t bytes,
                    int64_t offset = -1) {
    infos_ += text(name) + bytes_of_number(static_cast<uint32_t>(dims.size()));
    for (uint64_t dim : dims) infos_ += bytes_of_number(dim);
    data_.resize((data_.size() + alignment_ - 1) / alignment_ * alignment_);
    infos_ +=
        bytes_of_number(type) + bytes_of_number(offset < 0 ? static_cast<uint64_t>(data_.size())
                                                           : static_cast<uint64_t>(offset));
    data_.append(bytes, static_cast<char>(tensor_count_++));
    return *this;
  }

  /// The whole file; with counts of tensors and keys where they are given.
  std::string file(int64_t tensors = -1, int64_t keys = -1) const {
    std::string file =
        "GGUF" + bytes_of_number(version_) +
        bytes_of_number(tensors < 0 ? tensor_count_ : static_cast<uint64_t>(tensors)) +
        bytes_of_number(keys < 0 ? key_count_ : static_cast<uint64_t>(keys)) + keys_ + infos_;
    file.resize((file.size() + alignment_ - 1) / alignment_ * alignment_);
    return file + data_;
  }

 private:
  uint32_t version_;
  uint64_t alignment_, key_count_ = 0, tensor_count_ = 0;
  std::string keys_, infos_, data_;
};

}  // namespace sinter
