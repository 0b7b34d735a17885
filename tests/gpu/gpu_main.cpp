// Tests that need a CUDA device; without one they say so and pass. With --machine the program
// prints what device and libraries it would test, as JSON in one line.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "runtime/cuda/cublaslt.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/nvrtc_library.h"

namespace {

/// "13.0" of 13000, the number that the driver gives.
std::string cuda_version(int number) {
  return fmt::format("{}.{}", number / 1000, number % 1000 / 10);
}

/// "libnvrtc.so.13.0.88", the file that the name of the library stands for.
std::string file_name(const std::string& path) {
  std::error_code error;
  const auto file = std::filesystem::canonical(path, error);
  return error ? path : file.filename().string();
}

/// A library that is not found is null.
int print_machine() {
  const auto device = sinter::CudaDevice::open(0);
  if (!device) {
    std::fprintf(stderr, "%s\n", device.error().message().c_str());
    return 1;
  }
  const int capability = (*device)->compute_capability();
  nlohmann::ordered_json machine = {
      {"device", (*device)->name()},
      {"compute_capability", fmt::format("{}.{}", capability / 10, capability % 10)},
      {"cuda", cuda_version((*device)->driver_version())},
      {"nvrtc", nullptr},
      {"cublaslt", nullptr}};
  if (const auto nvrtc = sinter::find_nvrtc()) machine["nvrtc"] = file_name(nvrtc->path);
  if (const auto library = sinter::load_cublaslt()) machine["cublaslt"] = (*library)->version();
  std::puts(machine.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const auto devices = sinter::cuda_device_count();
  if (!devices || *devices == 0) {
    std::puts("skipped: no CUDA device");
    return 0;
  }
  if (argc == 2 && std::string_view(argv[1]) == "--machine") return print_machine();
  return doctest::Context(argc, argv).run();
}
