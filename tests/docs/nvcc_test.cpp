// Kernels of a plan's folder compile with nvcc as they stand, and what nvcc's ptxas says of them is
// what machine code tells.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <regex>

#include "cli/program.h"
#include "runtime/cuda/kernel_resources.h"

namespace sinter::nvcc_test {
namespace {

namespace fs = std::filesystem;

/// The path of nvcc; "" where there is none.
std::string find_nvcc() {
  const ProgramRun run = run_shell(
      "PATH=\"$PATH:${CUDA_HOME:-/usr/local/cuda}/bin:/usr/local/cuda/bin\"; command -v nvcc");
  return run.out.substr(0, run.out.find('\n'));
}

/// The number before `words` in what ptxas says.
int64_t said(const std::string& text, const std::string& words) {
  std::smatch match;
  return std::regex_search(text, match, std::regex("([0-9]+) " + words)) ? std::stoll(match[1]) : 0;
}

TEST_CASE("nvcc -I include compiles kernels of a plan's folder") {
  const std::string nvcc = find_nvcc();
  if (nvcc.empty()) {
    MESSAGE("skipped: no nvcc");
    return;
  }
  const TemporaryDirectory folder;
  const std::string plan = folder.path() + "/plan";
  REQUIRE(
      run_program({"compile", SINTER_SAMPLES_DIR "/small-llama", "-o", plan, "--no-machine-code"})
          .code == 0);
  // The first kernel around each header: rows, gemv, attention, sampling.
  std::vector<std::string> kernels;
  for (const auto& entry : fs::directory_iterator(plan + "/kernels"))
    kernels.push_back(entry.path().stem().string());
  std::sort(kernels.begin(), kernels.end());
  size_t compiled = 0;
  for (const char* header : {"reduce.cuh", "gemv.cuh", "attention.cuh", "sample.cuh"}) {
    CAPTURE(header);
    const auto kernel = std::find_if(kernels.begin(), kernels.end(), [&](const std::string& name) {
      return read_whole(plan + "/kernels/" + name + ".cu").find("/" + std::string(header)) !=
             std::string::npos;
    });
    if (kernel == kernels.end()) continue;
    const std::string code = folder.path() + "/" + *kernel + ".cubin";
    const ProgramRun run =
        run_shell("cd '" + plan + "' && '" + nvcc + "' -arch=sm_90a -I include -Xptxas -v -cubin " +
                  "kernels/" + *kernel + ".cu -o '" + code + "'");
    REQUIRE_MESSAGE(run.code == 0, run.err);
    ++compiled;
    const std::string text = run.out + run.err;
    const auto used = kernel_resources(read_whole(code), *kernel);
    REQUIRE(used);
    const std::string own = text.substr(std::min(text.find("'" + *kernel + "'"), text.size()));
    CHECK_MESSAGE(used->registers == said(own.substr(own.find("Used")), "registers"), text);
    CHECK_MESSAGE(used->shared_bytes == said(own, "bytes smem"), text);
    CHECK_MESSAGE(used->spill_bytes >= said(own, "bytes stack frame"), text);
  }
  CHECK(compiled >= 3);
}

}  // namespace
}  // namespace sinter::nvcc_test
