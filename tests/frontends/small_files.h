// Shared by the tests of the file readers: a folder that goes away, and checks of error texts.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>

#include "frontends/files/safetensors.h"

namespace sinter {

/// An empty folder for one test, removed with everything in it.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;

  std::string path(std::string_view name = {}) const;
  /// Writes a file of these bytes; gives its path.
  std::string write(std::string_view name, std::string_view bytes) const;

 private:
  std::filesystem::path folder_;
};

std::string bytes_of(const std::string& path);

/// `header` after its length, then `data_bytes` counting bytes.
std::string safetensors_bytes(std::string_view header, size_t data_bytes);
/// An entry of a safetensors header.
std::string entry(std::string_view name, std::string_view dtype, std::string_view shape,
                  std::string_view begin, std::string_view end);

/// The message of a failure is one line and holds every one of `parts`.
void check_message(const Error& error, std::initializer_list<std::string_view> parts);
template <typename T>
void check_error(const Result<T>& result, std::initializer_list<std::string_view> parts) {
  REQUIRE_FALSE(result.has_value());
  check_message(result.error(), parts);
}

}  // namespace sinter
