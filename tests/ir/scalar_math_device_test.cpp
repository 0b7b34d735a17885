// NVRTC accepts scalar_math.h; no GPU is needed. Skipped where NVRTC is missing.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace {

struct Nvrtc {
  using Program = struct OpaqueProgram*;
  void* library = nullptr;
  int (*create)(Program*, const char*, const char*, int, const char* const*, const char* const*);
  int (*compile)(Program, int, const char* const*);
  int (*log_size)(Program, size_t*);
  int (*log)(Program, char*);
  int (*cubin_size)(Program, size_t*);
  int (*destroy)(Program*);

  Nvrtc() {
    for (const char* path : {"libnvrtc.so.13", "/usr/local/cuda/lib64/libnvrtc.so.13"})
      if (library == nullptr) library = dlopen(path, RTLD_NOW);
    if (library == nullptr) return;
    load(create, "nvrtcCreateProgram");
    load(compile, "nvrtcCompileProgram");
    load(log_size, "nvrtcGetProgramLogSize");
    load(log, "nvrtcGetProgramLog");
    load(cubin_size, "nvrtcGetCUBINSize");
    load(destroy, "nvrtcDestroyProgram");
  }

  template <typename Function>
  void load(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    const bool found = function != nullptr;
    REQUIRE_MESSAGE(found, name);
  }
};

constexpr const char* kKernel = R"(
extern "C" __global__ void apply(float* out, unsigned short* half, const float* x, const int* n, long long* wide) {
  using namespace sinter::math;
  const int i = threadIdx.x;
  const float a = x[i];
  out[0] = sinter::math::exp(a);
  out[1] = sinter::math::log(a);
  out[2] = sinter::math::tanh(a);
  out[3] = sinter::math::erf(a);
  out[4] = sinter::math::sin(a);
  out[5] = sinter::math::cos(a) + sinter::math::atan(a);
  out[6] = sinter::math::sqrt(a);
  out[7] = maximum(minimum(add(a, 1.0f), mul(a, a)), sinter::math::div(a, sub(a, 2.0f)));
  out[8] = neg(sinter::math::abs(a)) + f16_to_float(half[2]) + bf16_to_float(half[3]);
  out[10] = exp_neg_abs(a) + sigmoid(a) + sinter::math::rsqrt(a) + (a < 0.0f ? minus_zero() : reciprocal_near_one(a));
  out[11] = sinter::math::expm1(a) + sinter::math::log1p(a) + sinter::math::pow(a, a);
  out[14] = sinter::math::floor(a) + sinter::math::round(a);
  wide[0] = add(mul(wide[1], wide[2]), div_floor(wide[3], mod_floor(wide[4], float_to_i64(a))));
  out[12] = i64_to_float(wide[5]) + bf16_to_float(i64_to_bf16(wide[6])) + f16_to_float(i64_to_f16(wide[7]));
  out[13] = i32_to_float(float_to_i32(a) + i64_to_i32(wide[8]));
  out[9] = i32_to_float(maximum(minimum(add(n[0], n[1]), mul(n[2], n[3])), sub(n[4], n[5])));
  half[0] = float_to_f16(a);
  half[1] = float_to_bf16(a);
  half[2] = i32_to_f16(n[0]);
  half[3] = i32_to_bf16(n[0]);
}
)";

TEST_CASE("NVRTC compiles the header to machine code" * doctest::test_suite("nvrtc")) {
  Nvrtc nvrtc;
  if (nvrtc.library == nullptr) {
    MESSAGE("skipped: no libnvrtc.so.13 on this machine");
    return;
  }
  std::ifstream file(SINTER_TESTS_DIR "/../ir/scalar_math.h");
  std::stringstream source;
  source << file.rdbuf() << kKernel;
  for (const char* arch :
       {"--gpu-architecture=sm_75", "--gpu-architecture=sm_80", "--gpu-architecture=sm_90a"}) {
    CAPTURE(arch);
    Nvrtc::Program program = nullptr;
    REQUIRE(nvrtc.create(&program, source.str().c_str(), "scalar_math.cu", 0, nullptr, nullptr) ==
            0);
    const char* options[] = {
        arch, "--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true", "--std=c++17"};
    const int status = nvrtc.compile(program, 6, options);
    size_t size = 0;
    nvrtc.log_size(program, &size);
    std::string log(size, '\0');
    nvrtc.log(program, log.data());
    CAPTURE(log);
    CHECK(status == 0);
    CHECK(log.size() <= 1);  // no warnings
    CHECK(nvrtc.cubin_size(program, &size) == 0);
    CHECK(size > 0);
    nvrtc.destroy(&program);
  }
}

}  // namespace
