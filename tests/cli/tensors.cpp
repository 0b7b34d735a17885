#include "cli/tensors.h"

#include <doctest/doctest.h>

#include <cstring>
#include <nlohmann/json.hpp>

namespace sinter {
namespace {

template <typename T>
TestTensor tensor(const std::string& name, const char* dtype, std::vector<int64_t> dims,
                  const std::vector<T>& values) {
  return {name, dtype, std::move(dims),
          std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T))};
}

struct FileParts {
  nlohmann::json header;
  std::string data;
};
FileParts parts_of(const std::string& file) {
  uint64_t length = 0;
  REQUIRE(file.size() >= sizeof(length));
  std::memcpy(&length, file.data(), sizeof(length));
  return {nlohmann::json::parse(file.substr(sizeof(length), length)),
          file.substr(sizeof(length) + length)};
}

}  // namespace

TestTensor f32_tensor(const std::string& name, std::vector<int64_t> dims,
                      const std::vector<float>& values) {
  return tensor(name, "F32", std::move(dims), values);
}

TestTensor i32_tensor(const std::string& name, std::vector<int64_t> dims,
                      const std::vector<int32_t>& values) {
  return tensor(name, "I32", std::move(dims), values);
}

std::string tensors_file(const std::vector<TestTensor>& tensors) {
  std::string header, data;
  for (const TestTensor& one : tensors) {
    const nlohmann::json entry = {{"dtype", one.dtype},
                                  {"shape", one.dims},
                                  {"data_offsets", {data.size(), data.size() + one.bytes.size()}}};
    header += (header.empty() ? "{" : ",") + nlohmann::json(one.name).dump() + ":" + entry.dump();
    data += one.bytes;
  }
  header += header.empty() ? "{}" : "}";
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + header + data;
}

std::vector<std::string> tensor_names(const std::string& file) {
  std::vector<std::string> names;
  const FileParts parts = parts_of(file);
  for (const auto& [name, entry] : parts.header.items())
    if (name != "__metadata__") names.push_back(name);
  return names;
}

std::vector<float> floats_of(const std::string& file, const std::string& name) {
  const FileParts parts = parts_of(file);
  REQUIRE_MESSAGE(parts.header.contains(name), parts.header.dump());
  const auto& entry = parts.header[name];
  REQUIRE(entry["dtype"] == "F32");
  const size_t begin = entry["data_offsets"][0], end = entry["data_offsets"][1];
  std::vector<float> values((end - begin) / sizeof(float));
  std::memcpy(values.data(), parts.data.data() + begin, end - begin);
  return values;
}

}  // namespace sinter
