// Safetensors files as the program's tests make and read them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sinter {

struct TestTensor {
  std::string name, dtype;
  std::vector<int64_t> dims;
  std::string bytes;
};

TestTensor f32_tensor(const std::string& name, std::vector<int64_t> dims,
                      const std::vector<float>& values);
TestTensor i32_tensor(const std::string& name, std::vector<int64_t> dims,
                      const std::vector<int32_t>& values);
/// A file of these tensors, in this order, its header as it comes: names may repeat.
std::string tensors_file(const std::vector<TestTensor>& tensors);

/// Names of a file's tensors, sorted.
std::vector<std::string> tensor_names(const std::string& file);
/// The elements of an F32 tensor of the file, which must be there.
std::vector<float> floats_of(const std::string& file, const std::string& name);

}  // namespace sinter
