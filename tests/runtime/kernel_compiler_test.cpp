// Compilations that the cache saves. A process of its own, because no other test may have loaded
// NVRTC in it.
#include "runtime/cuda/kernel_compiler.h"

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "runtime/temporary_directory.h"
#include "support/nvrtc.h"

namespace sinter::kernel_compiler_test {
namespace {

constexpr EmbeddedHeader kHeaders[] = {
    {"sinter/scale.cuh", "__device__ inline float scale(float x) { return x * 3.0f + 1.0f; }\n"}};

constexpr KernelSource kScale = {"scale", R"(
#include "sinter/scale.cuh"
extern "C" __global__ void scale_all(const float* x, float* y, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i < n) y[i] = scale(x[i]);
}
)"};

bool is_loaded(const NvrtcFile& nvrtc) {
  void* library = dlopen(nvrtc.path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (library != nullptr) dlclose(library);
  return library != nullptr;
}

TEST_CASE(
    "everything that a compilation depends on is part of the key; a warm cache loads nothing") {
  // NVRTC cannot be loaded from this path, so whatever is found came from the cache.
  TemporaryDirectory temporary;
  const NvrtcFile nvrtc{temporary.path() + "/libnvrtc.so", "libnvrtc.so.13.0.1 100"};
  const KernelCache cache(temporary.path());
  const auto found = [&](const NvrtcFile& file, const KernelSource& source,
                         llvm::ArrayRef<EmbeddedHeader> headers, const char* arch) {
    const auto result = compile_cached(file, cache, source, headers, arch);
    return result && result->from_cache == 1 && result->cubins[0].bytes == "machine code";
  };
  CHECK_FALSE(found(nvrtc, kScale, kHeaders, "sm_90a"));
  std::vector<std::string_view> parts = {nvrtc.identity, kScale.text};
  const std::vector<std::string> options = nvrtc_options("sm_90a");
  parts.insert(parts.end(), options.begin(), options.end());
  parts.insert(parts.end(), {kHeaders[0].name, kHeaders[0].text});
  REQUIRE(cache.store(CacheKey::of(parts), "machine code"));
  CHECK(found(nvrtc, kScale, kHeaders, "sm_90a"));

  CHECK_FALSE(found({nvrtc.path, "libnvrtc.so.13.0.2 100"}, kScale, kHeaders, "sm_90a"));
  CHECK_FALSE(found(nvrtc, kScale, kHeaders, "sm_90"));
  CHECK_FALSE(found(nvrtc, {"scale", "other text"}, kHeaders, "sm_90a"));
  CHECK_FALSE(found(nvrtc, kScale, {}, "sm_90a"));
  const EmbeddedHeader edited{kHeaders[0].name, "other text"};
  CHECK_FALSE(found(nvrtc, kScale, edited, "sm_90a"));
}

TEST_CASE("what one process compiled the next finds in the cache, and never loads NVRTC" *
          doctest::test_suite("nvrtc")) {
  const NvrtcFile* nvrtc = nvrtc_or_skip();
  if (!nvrtc) return;
  TemporaryDirectory temporary;
  const KernelCache cache(temporary.path());
  const KernelSource other{"other", "extern \"C\" __global__ void other(float* x) { *x = 1.0f; }"};
  const auto compile = [&](llvm::ArrayRef<KernelSource> sources) {
    return compile_cached(*nvrtc, cache, sources, kHeaders, "sm_90a", 1);
  };
  const auto in_child = [](auto act) {
    const pid_t child = fork();
    if (child == 0) _exit(act() ? 0 : 1);
    int status = -1;
    waitpid(child, &status, 0);
    return status;
  };
  CHECK(in_child([&] {
          const auto result = compile(kScale);
          return result && result->from_cache == 0 && is_loaded(*nvrtc);
        }) == 0);
  CHECK(in_child([&] {  // one of two is there
          const auto result = compile({other, kScale});
          return result && result->from_cache == 1 &&
                 result->cubins[0].bytes != result->cubins[1].bytes;
        }) == 0);
  const auto result = compile({kScale, other});
  REQUIRE(result);
  CHECK(result->from_cache == 2);
  CHECK_FALSE(is_loaded(*nvrtc));
  const auto fresh = compile_kernels(*nvrtc, {kScale, other}, kHeaders, "sm_90a");
  REQUIRE(fresh);
  CHECK((*fresh)[0].bytes == result->cubins[0].bytes);
  CHECK((*fresh)[1].bytes == result->cubins[1].bytes);
}

}  // namespace
}  // namespace sinter::kernel_compiler_test
