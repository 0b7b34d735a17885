// Compiles real kernels where the machine has NVRTC; a GPU is not needed. Without NVRTC the message
// that says so is tested.
#include "runtime/cuda/nvrtc.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>
#include <vector>

#include "runtime/temporary_directory.h"
#include "support/nvrtc.h"

namespace sinter::nvrtc_test {
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

bool is_elf(const Cubin& cubin) {
  return cubin.bytes.starts_with(
      "\x7f"
      "ELF");
}

TEST_CASE("a machine without NVRTC says where it was sought and what to do") {
  const auto nvrtc = find_nvrtc();
  if (nvrtc) {
    CHECK(nvrtc->path.starts_with('/'));
    CHECK(nvrtc->identity.starts_with("libnvrtc"));
  } else {
    CHECK(nvrtc.error().code == ExitCode::device);
    CHECK(nvrtc.error().message().find("/usr/local/cuda/lib64") != std::string::npos);
    CHECK(nvrtc.error().message().find("CUDA_HOME") != std::string::npos);
  }
}

TEST_CASE("a library that is not NVRTC is a device error") {
  TemporaryDirectory temporary;
  const NvrtcFile absent{temporary.path() + "/libnvrtc.so", "none"};
  const auto result = compile_kernel(absent, kScale, kHeaders, "sm_90a");
  REQUIRE_FALSE(result);
  CHECK(result.error().code == ExitCode::device);
}

TEST_CASE("kernels compile with the contract's flags, for the architecture asked for" *
          doctest::test_suite("nvrtc")) {
  const NvrtcFile* nvrtc = nvrtc_or_skip();
  if (!nvrtc) return;
  const auto cubin = compile_kernel(*nvrtc, kScale, kHeaders, "sm_90a");
  REQUIRE_MESSAGE(cubin, cubin.error().message());
  CHECK(is_elf(*cubin));
  CHECK(cubin->bytes.find("scale_all") != std::string::npos);
  const auto again = compile_kernel(*nvrtc, kScale, kHeaders, "sm_90a");
  REQUIRE(again);
  CHECK(again->bytes == cubin->bytes);

  // The multiplication and addition of scale() stay two instructions; one that asks for a fused
  // operation in so many words differs.
  const EmbeddedHeader fused{
      "sinter/scale.cuh",
      "__device__ inline float scale(float x) { return __fmaf_rn(x, 3.0f, 1.0f); }\n"};
  const auto other = compile_kernel(*nvrtc, kScale, fused, "sm_90a");
  REQUIRE(other);
  CHECK(other->bytes != cubin->bytes);
}

TEST_CASE("text that does not compile gives the compiler's log and the kernel's name" *
          doctest::test_suite("nvrtc")) {
  const NvrtcFile* nvrtc = nvrtc_or_skip();
  if (!nvrtc) return;
  const TemporaryDirectory temporary;
  setenv("TMPDIR", temporary.path().c_str(), 1);
  const KernelSource broken{"add_rms_norm", "extern \"C\" __global__ void k() { undeclared(); }"};
  const auto result = compile_kernels(*nvrtc, {kScale, broken}, kHeaders, "sm_90a", 2);
  REQUIRE_FALSE(result);
  CHECK(result.error().code == ExitCode::internal_error);
  CHECK(result.error().what.find("add_rms_norm") != std::string::npos);
  CHECK(result.error().what.find("undeclared") != std::string::npos);
  const std::string message = result.error().message();
  CAPTURE(message);
  CHECK(message.find('\n') == std::string::npos);
  const std::string& hint = result.error().hint;
  const size_t path = hint.find(temporary.path() + "/sinter-add_rms_norm-");
  REQUIRE(path != std::string::npos);
  CHECK(hint.ends_with(".cu"));
  std::ifstream kept(hint.substr(path));
  CHECK(std::string(std::istreambuf_iterator<char>(kept), {}) == broken.text);

  // Where the text cannot be left, the error is the same.
  setenv("TMPDIR", (temporary.path() + "/absent").c_str(), 1);
  const auto again = compile_kernel(*nvrtc, broken, kHeaders, "sm_90a");
  unsetenv("TMPDIR");
  REQUIRE_FALSE(again);
  CHECK(again.error().hint == "report this with the kernel's text");
}

TEST_CASE("an architecture that this NVRTC does not know is a device error" *
          doctest::test_suite("nvrtc")) {
  const NvrtcFile* nvrtc = nvrtc_or_skip();
  if (!nvrtc) return;
  const auto result = compile_kernel(*nvrtc, kScale, kHeaders, "sm_1");
  REQUIRE_FALSE(result);
  CHECK(result.error().code == ExitCode::device);
  CHECK(result.error().what.find("sm_1") != std::string::npos);
}

TEST_CASE("many kernels in threads equal the same kernels one by one, in order" *
          doctest::test_suite("nvrtc")) {
  const NvrtcFile* nvrtc = nvrtc_or_skip();
  if (!nvrtc) return;
  std::vector<std::string> texts;
  for (int i = 0; i < 6; ++i)
    texts.push_back(
        fmt::format("extern \"C\" __global__ void kernel_{0}(float* x) "
                    "{{ x[threadIdx.x] += {0}.0f; }}",
                    i));
  std::vector<KernelSource> sources;
  for (const std::string& text : texts) sources.push_back({"k", text});
  const auto together = compile_kernels(*nvrtc, sources, {}, "sm_90a", 4);
  REQUIRE(together);
  REQUIRE(together->size() == sources.size());
  for (size_t i = 0; i < sources.size(); ++i)
    CHECK(compile_kernel(*nvrtc, sources[i], {}, "sm_90a")->bytes == (*together)[i].bytes);
  CHECK(compile_kernels(*nvrtc, {}, {}, "sm_90a")->empty());
}

std::atomic<int> signals_seen = 0;

TEST_CASE("a program's own signal handlers run while kernels compile, and stay" *
          doctest::test_suite("nvrtc")) {
  const NvrtcFile* nvrtc = nvrtc_or_skip();
  if (!nvrtc) return;
  constexpr int kSignals[] = {SIGINT, SIGTERM, SIGXFSZ, SIGSEGV, SIGABRT};
  struct sigaction own = {}, before[std::size(kSignals)];
  own.sa_handler = [](int) { ++signals_seen; };
  own.sa_flags = SA_RESTART;
  for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &own, &before[i]);

  std::string text;
  for (int i = 0; i < 40; ++i)
    text +=
        fmt::format("extern \"C\" __global__ void k{0}(float* x) {{ x[{0}] = sinf(x[0]); }}\n", i);
  const KernelSource source{"many", text};
  std::atomic<bool> done = false;
  bool compiled = true;
  std::thread compiler([&] {
    for (int i = 0; i < 6; ++i) compiled = compiled && compile_kernel(*nvrtc, source, {}, "sm_90a");
    done = true;
  });
  int sent = 0;
  while (!done) {
    for (const int signal : {SIGINT, SIGTERM, SIGXFSZ}) {
      kill(getpid(), signal);
      ++sent;
      while (signals_seen < sent) std::this_thread::yield();  // signals of a kind do not queue
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  compiler.join();
  CHECK(compiled);
  CHECK(sent > 30);
  CHECK(signals_seen == sent);
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    struct sigaction now;
    sigaction(kSignals[i], &before[i], &now);
    CAPTURE(i);
    CHECK((now.sa_handler == own.sa_handler));
    CHECK((now.sa_flags & SA_RESTART) != 0);
  }
}

}  // namespace
}  // namespace sinter::nvrtc_test
