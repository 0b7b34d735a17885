// NVIDIA's cuBLASLt, found when it is asked for. Nothing of CUDA is needed when Sinter is built.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "ir/error.h"
#include "runtime/cuda/driver.h"

namespace sinter {

/// The library's entry points in use, with the types and numbers that its C interface gives them
/// (cublasLt.h of CUDA 12 and 13).
struct CublasLtApi {
  using Handle = struct CublasLtHandle*;
  using Matmul = struct CublasLtMatmulHandle*;          // cublasLtMatmulDesc_t
  using Layout = struct CublasLtLayoutHandle*;          // cublasLtMatrixLayout_t
  using Preference = struct CublasLtPreferenceHandle*;  // cublasLtMatmulPreference_t
  struct Algorithm {
    uint64_t data[8];
  };
  struct Heuristic {
    Algorithm algorithm;
    size_t workspace_bytes;
    int status;
    float waves;
    int reserved[4];
  };

  // cublasStatus_t, cublasComputeType_t; cudaDataType_t stands in ir/dtypes.def
  static constexpr int kSuccess = 0, kNotSupported = 15;
  static constexpr int kCompute32F = 68;
  // cublasOperation_t, cublasLtEpilogue_t, cublasLtReductionScheme_t
  static constexpr int32_t kTranspose = 1;
  static constexpr uint32_t kEpilogueDefault = 1, kEpilogueRelu = 2, kEpilogueBias = 4,
                            kEpilogueGelu = 32;
  static constexpr uint32_t kReductionNone = 0, kReductionComputeType = 2;
  // cublasLtNumericalImplFlags_t
  static constexpr uint64_t kAccumulate16F = 1ull << 8;
  static constexpr uint64_t kInput16F = 1ull << 16, kInputBf16 = 2ull << 16,
                            kInputTf32 = 4ull << 16;
  // Attributes: cublasLtMatmulDescAttributes_t, cublasLtMatrixLayoutAttribute_t,
  // cublasLtMatmulPreferenceAttributes_t, cublasLtMatmulAlgoConfigAttributes_t
  static constexpr int kMatmulTransposeA = 3, kMatmulTransposeB = 4, kMatmulEpilogue = 7,
                       kMatmulBiasPointer = 8, kMatmulBiasType = 26;
  static constexpr int kLayoutBatchCount = 5, kLayoutBatchStride = 6;
  static constexpr int kPreferWorkspace = 1, kPreferReductions = 3, kPreferAlignmentA = 5,
                       kPreferAlignmentB = 6, kPreferAlignmentC = 7, kPreferAlignmentD = 8,
                       kPreferImplementations = 12;
  static constexpr int kConfigReduction = 3, kConfigInnerShape = 7, kConfigClusterShape = 8;

  size_t (*version)();
  const char* (*status_name)(int status);
  int (*create)(Handle* handle);
  int (*destroy)(Handle handle);
  int (*matmul_create)(Matmul* matmul, int compute_type, int scale_type);
  int (*matmul_destroy)(Matmul matmul);
  int (*matmul_set)(Matmul matmul, int attribute, const void* value, size_t bytes);
  int (*layout_create)(Layout* layout, int type, uint64_t rows, uint64_t columns, int64_t leading);
  int (*layout_destroy)(Layout layout);
  int (*layout_set)(Layout layout, int attribute, const void* value, size_t bytes);
  int (*preference_create)(Preference* preference);
  int (*preference_destroy)(Preference preference);
  int (*preference_set)(Preference preference, int attribute, const void* value, size_t bytes);
  int (*heuristics)(Handle handle, Matmul matmul, Layout a, Layout b, Layout c, Layout d,
                    Preference preference, int wanted, Heuristic* results, int* found);
  int (*config_get)(const Algorithm* algorithm, int attribute, void* value, size_t bytes,
                    size_t* written);
  int (*multiply)(Handle handle, Matmul matmul, const void* alpha, const void* a, Layout a_layout,
                  const void* b, Layout b_layout, const void* beta, const void* c, Layout c_layout,
                  void* d, Layout d_layout, const Algorithm* algorithm, void* workspace,
                  size_t workspace_bytes, CudaApi::Stream stream);
};

/// The library of this machine, loaded on first use: where the dynamic loader finds it, then in
/// $CUDA_HOME/lib64, $CUDA_PATH/lib64 and /usr/local/cuda/lib64. Thread-safe. The error (exit code
/// 5) says where it was sought.
Result<const CublasLtApi*> load_cublaslt();

/// "cublasLtMatmul: CUBLAS_STATUS_NOT_SUPPORTED (15)". `status` is not 0.
Error cublaslt_error(const CublasLtApi& api, std::string_view call, int status,
                     std::string where = {});

/// The library's state on the device whose context is current.
class CublasLt {
 public:
  static Result<std::shared_ptr<CublasLt>> create();
  ~CublasLt();
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;

  const CublasLtApi& api() const { return api_; }
  CublasLtApi::Handle handle() const { return handle_; }
  /// "cuBLASLt 130000"
  std::string name() const;

 private:
  explicit CublasLt(const CublasLtApi& api) : api_(api) {}

  const CublasLtApi& api_;
  CublasLtApi::Handle handle_ = nullptr;
};

}  // namespace sinter
