// NVRTC for test cases that compile real kernels. Beside others they are of doctest's suite
// "nvrtc", a test of its own (NVRTC of sinter_test), so that ctest calls it skipped where there is
// no NVRTC.
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>

#include "kernels/library.h"
#include "runtime/cuda/kernel_compiler.h"

namespace sinter {

/// NVRTC of this machine; without one, null and the message by which ctest knows a skipped test.
inline const NvrtcFile* nvrtc_or_skip() {
  static const Result<NvrtcFile> found = find_nvrtc();
  if (found) return &*found;
  MESSAGE("skipped: " << found.error().message());
  return nullptr;
}

/// Whether NVRTC takes kernels, with the library's headers and the options that a plan's kernels
/// have. The machine code is not looked at, so NVRTC optimizes little, which halves its time. What
/// has compiled is remembered in the folder that SINTER_SHIM_CACHE names, under all that it depends
/// on, and is not compiled again.
inline Status compile_or_find(const NvrtcFile& nvrtc, llvm::ArrayRef<KernelSource> sources,
                              const std::string& arch) {
  const char* kept = std::getenv("SINTER_SHIM_CACHE");
  const KernelCache cache(kept ? kept : "");
  SINTER_LET(api, load_nvrtc(nvrtc.path));
  std::vector<std::string> options = nvrtc_options(arch), names, texts;
  options.push_back("--Ofast-compile=max");
  for (const EmbeddedHeader& header : kernel_library()) {
    names.emplace_back(header.name);
    texts.emplace_back(header.text);
  }
  std::vector<std::string_view> parts = {nvrtc.identity, ""};
  for (const auto* strings : {&options, &names, &texts})
    parts.insert(parts.end(), strings->begin(), strings->end());
  const auto addresses = [](const std::vector<std::string>& strings) {
    std::vector<const char*> result;
    for (const std::string& text : strings) result.push_back(text.c_str());
    return result;
  };
  const auto compiles = [&](const std::string& text) {
    NvrtcApi::Program program = nullptr;
    const bool taken =
        api->create_program(&program, text.c_str(), "kernel.cu", static_cast<int>(names.size()),
                            addresses(texts).data(), addresses(names).data()) == 0 &&
        api->compile_program(program, static_cast<int>(options.size()),
                             addresses(options).data()) == 0;
    if (program) api->destroy_program(&program);
    return taken;
  };
  for (const KernelSource& source : sources) {
    parts[1] = source.text;
    const CacheKey key = CacheKey::of(parts);
    if (cache.find(key)) continue;
    // As a plan's kernel, where it fails: for the message, and for an NVRTC without the option.
    if (!compiles(std::string(source.text)))
      SINTER_TRY(compile_kernel(nvrtc, source, kernel_library(), arch));
    cache.store(key, "compiles");
  }
  cache.trim();
  return {};
}

}  // namespace sinter
