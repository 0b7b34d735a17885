// The library's interface as Sinter declares it against NVIDIA's header, where there is one, and
// the errors of a machine without a device.
#include "runtime/cuda/cublaslt.h"

#include <doctest/doctest.h>

#include <type_traits>

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#endif

namespace sinter::cublaslt_test {
namespace {

#if __has_include(<cublasLt.h>)

using Api = CublasLtApi;

/// Whether two parameters are passed alike: integers and enumerations of one size, or pointers to
/// what has one size or is opaque.
template <typename T, typename U>
constexpr bool alike() {
  if constexpr (std::is_pointer_v<T> || std::is_pointer_v<U>) {
    return std::is_pointer_v<T> && std::is_pointer_v<U>;
  } else {
    return std::is_scalar_v<T> && std::is_scalar_v<U> && sizeof(T) == sizeof(U) &&
           std::is_floating_point_v<T> == std::is_floating_point_v<U>;
  }
}
template <typename F, typename G>
struct SameCall : std::false_type {};
template <typename R, typename... P, typename S, typename... Q>
struct SameCall<R (*)(P...), S (*)(Q...)> {
  static constexpr bool compare() {
    if constexpr (sizeof...(P) == sizeof...(Q)) return alike<R, S>() && (alike<P, Q>() && ...);
    return false;
  }
  static constexpr bool value = compare();
};

#define SAME_CALL(member, function) \
  static_assert(SameCall<decltype(Api::member), decltype(&function)>::value, #function)
SAME_CALL(version, cublasLtGetVersion);
SAME_CALL(status_name, cublasLtGetStatusName);
SAME_CALL(create, cublasLtCreate);
SAME_CALL(destroy, cublasLtDestroy);
SAME_CALL(matmul_create, cublasLtMatmulDescCreate);
SAME_CALL(matmul_destroy, cublasLtMatmulDescDestroy);
SAME_CALL(matmul_set, cublasLtMatmulDescSetAttribute);
SAME_CALL(layout_create, cublasLtMatrixLayoutCreate);
SAME_CALL(layout_destroy, cublasLtMatrixLayoutDestroy);
SAME_CALL(layout_set, cublasLtMatrixLayoutSetAttribute);
SAME_CALL(preference_create, cublasLtMatmulPreferenceCreate);
SAME_CALL(preference_destroy, cublasLtMatmulPreferenceDestroy);
SAME_CALL(preference_set, cublasLtMatmulPreferenceSetAttribute);
SAME_CALL(heuristics, cublasLtMatmulAlgoGetHeuristic);
SAME_CALL(config_get, cublasLtMatmulAlgoConfigGetAttribute);
SAME_CALL(multiply, cublasLtMatmul);
// The comparison sees a wrong width and a missing parameter.
static_assert(!SameCall<int (*)(int*, int), int (*)(int*, int64_t)>::value);
static_assert(!SameCall<int (*)(int*), int (*)(int*, int)>::value);

static_assert(sizeof(Api::Algorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(Api::Heuristic) == sizeof(cublasLtMatmulHeuristicResult_t));
#define SAME_PLACE(member, theirs)                  \
  static_assert(offsetof(Api::Heuristic, member) == \
                offsetof(cublasLtMatmulHeuristicResult_t, theirs))
SAME_PLACE(algorithm, algo);
SAME_PLACE(workspace_bytes, workspaceSize);
SAME_PLACE(status, state);
SAME_PLACE(waves, wavesCount);

#define SAME_NUMBER(ours, theirs) \
  static_assert(Api::ours == static_cast<std::remove_const_t<decltype(Api::ours)>>(theirs), #theirs)
SAME_NUMBER(kSuccess, CUBLAS_STATUS_SUCCESS);
SAME_NUMBER(kNotSupported, CUBLAS_STATUS_NOT_SUPPORTED);
SAME_NUMBER(kCompute32F, CUBLAS_COMPUTE_32F);
static_assert(dtype_info(DType::f32).library == CUDA_R_32F);
static_assert(dtype_info(DType::f16).library == CUDA_R_16F);
static_assert(dtype_info(DType::bf16).library == CUDA_R_16BF);
SAME_NUMBER(kTranspose, CUBLAS_OP_T);
SAME_NUMBER(kEpilogueBias, CUBLASLT_EPILOGUE_BIAS);
SAME_NUMBER(kReductionNone, CUBLASLT_REDUCTION_SCHEME_NONE);
SAME_NUMBER(kReductionComputeType, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
SAME_NUMBER(kAccumulate16F, CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_16F);
SAME_NUMBER(kInput16F, CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16F);
SAME_NUMBER(kInputBf16, CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16BF);
SAME_NUMBER(kInputTf32, CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_TF32);
SAME_NUMBER(kMatmulTransposeA, CUBLASLT_MATMUL_DESC_TRANSA);
SAME_NUMBER(kMatmulTransposeB, CUBLASLT_MATMUL_DESC_TRANSB);
SAME_NUMBER(kMatmulEpilogue, CUBLASLT_MATMUL_DESC_EPILOGUE);
SAME_NUMBER(kMatmulBiasPointer, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
SAME_NUMBER(kMatmulBiasType, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE);
SAME_NUMBER(kLayoutBatchCount, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
SAME_NUMBER(kLayoutBatchStride, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
SAME_NUMBER(kPreferWorkspace, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
SAME_NUMBER(kPreferReductions, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
SAME_NUMBER(kPreferAlignmentA, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
SAME_NUMBER(kPreferAlignmentB, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
SAME_NUMBER(kPreferAlignmentC, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
SAME_NUMBER(kPreferAlignmentD, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
SAME_NUMBER(kPreferImplementations, CUBLASLT_MATMUL_PREF_IMPL_MASK);
SAME_NUMBER(kConfigReduction, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME);
SAME_NUMBER(kConfigInnerShape, CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID);
SAME_NUMBER(kConfigClusterShape, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID);

#endif

TEST_CASE("a machine without cuBLASLt, or without a device, gets an error that says so") {
  const auto loaded = load_cublaslt();
  if (!loaded) {
    CHECK(loaded.error().code == ExitCode::device);
    CHECK(loaded.error().what.starts_with("cuBLASLt cannot be loaded as any of libcublasLt.so.13"));
    CHECK(loaded.error().hint.find("CUDA_HOME") != std::string::npos);
    return;
  }
  const auto devices = cuda_device_count();
  if (devices && *devices > 0) return;
  const auto library = CublasLt::create();
  REQUIRE(!library);
  CHECK(library.error().code == ExitCode::device);
  CHECK(library.error().what.starts_with("cublasLtCreate: CUBLAS_STATUS_"));
  CHECK(library.error().where.starts_with("cuBLASLt 1"));
  MESSAGE(library.error().message());
}

TEST_CASE("errors of the library name the call, the status and its number") {
  const auto loaded = load_cublaslt();
  if (!loaded) return;
  const Error error = cublaslt_error(**loaded, "cublasLtMatmul", 15, "product 1x2x3x4");
  CHECK(error.message() == "product 1x2x3x4: cublasLtMatmul: CUBLAS_STATUS_NOT_SUPPORTED (15)");
  CHECK(error.code == ExitCode::device);
}

#undef SAME_CALL
#undef SAME_PLACE
#undef SAME_NUMBER

}  // namespace
}  // namespace sinter::cublaslt_test
