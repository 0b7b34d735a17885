#include "frontends/small_files.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <fstream>
#include <iterator>

namespace sinter {

ScratchFolder::ScratchFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "sinter_test_XXXXXX").string();
  REQUIRE(::mkdtemp(pattern.data()) != nullptr);
  folder_ = pattern;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string ScratchFolder::path(std::string_view name) const {
  return name.empty() ? folder_.string() : (folder_ / name).string();
}

std::string ScratchFolder::write(std::string_view name, std::string_view bytes) const {
  std::ofstream(path(name), std::ios::binary) << bytes;
  return path(name);
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file.good());
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::string safetensors_bytes(std::string_view header, size_t data_bytes) {
  std::string bytes;
  for (int shift = 0; shift < 64; shift += 8)
    bytes += static_cast<char>(static_cast<uint64_t>(header.size()) >> shift & 0xFF);
  bytes += header;
  for (size_t i = 0; i < data_bytes; ++i) bytes += static_cast<char>(i);
  return bytes;
}

std::string entry(std::string_view name, std::string_view dtype, std::string_view shape,
                  std::string_view begin, std::string_view end) {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})", name, dtype,
                     shape, begin, end);
}

void check_message(const Error& error, std::initializer_list<std::string_view> parts) {
  const std::string message = error.message();
  CAPTURE(message);
  CHECK(error.code == ExitCode::bad_input);
  CHECK(message.find('\n') == std::string::npos);
  CHECK(message.size() < 1000);
  for (std::string_view part : parts) {
    CAPTURE(part);
    CHECK(message.find(part) != std::string::npos);
  }
}

}  // namespace sinter
