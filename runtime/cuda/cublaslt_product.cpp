#include "runtime/cuda/cublaslt_product.h"

#include <algorithm>

namespace sinter {
namespace {

using Api = CublasLtApi;

int library_type(DType dtype) {
  const std::optional<int> type = dtype_info(dtype).library;
  SINTER_CHECK(type, "{} has no library type", to_string(dtype));
  return *type;
}

/// The implementations that an algorithm may use: sums in float32, float32 operands not shortened.
uint64_t allowed_implementations(DType operands) {
  uint64_t forbidden = Api::kAccumulate16F;
  if (operands == DType::f32) forbidden |= Api::kInput16F | Api::kInputBf16 | Api::kInputTf32;
  return ~forbidden;
}

/// cublasLtEpilogue_t: a bias is a bit beside what stands for an activation. The library's GELU is
/// the tanh form.
uint32_t epilogue_of(const CublasLtCall& call) {
  const uint32_t bias = call.bias ? Api::kEpilogueBias : 0;
  switch (call.activation) {
    case Activation::none:
      return call.bias ? bias : Api::kEpilogueDefault;
    case Activation::relu:
      return Api::kEpilogueRelu | bias;
    case Activation::gelu_tanh:
      return Api::kEpilogueGelu | bias;
  }
  SINTER_CHECK(false, "activation");
}

/// How split sums may be joined, a mask. In the result ("in place") and from parts of the result's
/// type, a sum is rounded more than once, and in place the order needs counters to be the same in
/// every run. With an epilogue, the joined sum is rounded to the result's type and then once more
/// after it (a bias: cuBLASLt 13.1, algorithm 24: all of 89 products of f16 and bf16). That is
/// taken where sums_may_round_twice: for few rows, where a long sum in one part leaves most of the
/// device idle (1 x 2560 x 10240 f16 runs in 92 us so, split in 17, on one H200), and with a
/// residual.
uint32_t allowed_reductions(const CublasLtCall& call, const GemmProblem& problem) {
  if (has_epilogue(problem) && call.d.dtype != DType::f32 && !sums_may_round_twice(problem))
    return Api::kReductionNone;
  return Api::kReductionNone | Api::kReductionComputeType;
}

}  // namespace

Status CublasLtProduct::status(int code, std::string_view call) const {
  if (code == Api::kSuccess) return {};
  return tl::make_unexpected(cublaslt_error(library_->api(), call, code, "product " + key_));
}

Result<CublasLtProduct> CublasLtProduct::create(std::shared_ptr<CublasLt> library,
                                                const CublasLtCall& call,
                                                const GemmProblem& problem, int wanted) {
  CublasLtProduct product(std::move(library));
  product.call_ = call;
  product.key_ = problem.key();
  product.reductions_ = allowed_reductions(call, problem);
  SINTER_TRY(product.make_matmul());
  SINTER_TRY(product.make_layout(call.a, product.a_));
  SINTER_TRY(product.make_layout(call.b, product.b_));
  SINTER_TRY(product.make_layout(call.d, product.d_));
  SINTER_TRY(product.make_proposals(wanted));
  return product;
}

CublasLtProduct::CublasLtProduct(std::shared_ptr<CublasLt> library)
    : library_(std::move(library)),
      matmul_(library_->api().matmul_destroy),
      a_(library_->api().layout_destroy),
      b_(library_->api().layout_destroy),
      d_(library_->api().layout_destroy) {}

Status CublasLtProduct::make_matmul() {
  const Api& api = library_->api();
  SINTER_TRY(
      status(api.matmul_create(matmul_.receive(), Api::kCompute32F, library_type(DType::f32)),
             "cublasLtMatmulDescCreate"));
  const auto set = [&](int attribute, const auto& value) {
    return status(api.matmul_set(matmul_.get(), attribute, &value, sizeof(value)),
                  "cublasLtMatmulDescSetAttribute");
  };
  if (call_.a.transposed) SINTER_TRY(set(Api::kMatmulTransposeA, Api::kTranspose));
  if (call_.b.transposed) SINTER_TRY(set(Api::kMatmulTransposeB, Api::kTranspose));
  if (const uint32_t epilogue = epilogue_of(call_); epilogue != Api::kEpilogueDefault)
    SINTER_TRY(set(Api::kMatmulEpilogue, epilogue));
  if (!call_.bias) return {};
  const int32_t type = library_type(call_.bias->dtype);
  SINTER_TRY(set(Api::kMatmulBiasType, type));
  // The library may look at the pointer's alignment when it proposes algorithms. Any address with
  // just that alignment stands for it, so that the proposal depends on the problem alone.
  return set_bias((CudaAddress{1} << 20) + static_cast<CudaAddress>(call_.bias->alignment));
}

Status CublasLtProduct::set_bias(CudaAddress bias) {
  if (bias == bias_) return {};
  SINTER_TRY(status(
      library_->api().matmul_set(matmul_.get(), Api::kMatmulBiasPointer, &bias, sizeof(bias)),
      "cublasLtMatmulDescSetAttribute"));
  bias_ = bias;
  return {};
}

Status CublasLtProduct::make_layout(const CublasLtCall::Matrix& matrix, Layout& layout) const {
  const Api& api = library_->api();
  SINTER_TRY(status(api.layout_create(layout.receive(), library_type(matrix.dtype),
                                      static_cast<uint64_t>(matrix.rows),
                                      static_cast<uint64_t>(matrix.columns), matrix.leading),
                    "cublasLtMatrixLayoutCreate"));
  if (call_.batch == 1) return {};
  const auto set = [&](int attribute, const auto& value) {
    return status(api.layout_set(layout.get(), attribute, &value, sizeof(value)),
                  "cublasLtMatrixLayoutSetAttribute");
  };
  const auto count = static_cast<int32_t>(call_.batch);
  SINTER_TRY(set(Api::kLayoutBatchCount, count));
  return set(Api::kLayoutBatchStride, matrix.batch_stride);
}

Status CublasLtProduct::set_preferences(Api::Preference preference) const {
  const Api& api = library_->api();
  const auto set = [&](int attribute, const auto& value) {
    return status(api.preference_set(preference, attribute, &value, sizeof(value)),
                  "cublasLtMatmulPreferenceSetAttribute");
  };
  SINTER_TRY(set(Api::kPreferWorkspace, kGemmWorkspaceBytes));
  SINTER_TRY(set(Api::kPreferReductions, reductions_));
  SINTER_TRY(set(Api::kPreferImplementations, allowed_implementations(call_.a.dtype)));
  SINTER_TRY(set(Api::kPreferAlignmentA, static_cast<uint32_t>(call_.a.alignment)));
  SINTER_TRY(set(Api::kPreferAlignmentB, static_cast<uint32_t>(call_.b.alignment)));
  SINTER_TRY(set(Api::kPreferAlignmentC,
                 static_cast<uint32_t>(call_.residual.value_or(call_.d.alignment))));
  return set(Api::kPreferAlignmentD, static_cast<uint32_t>(call_.d.alignment));
}

Status CublasLtProduct::make_proposals(int wanted) {
  const Api& api = library_->api();
  UniqueHandle<Api::Preference, decltype(api.preference_destroy)> preference(
      api.preference_destroy);
  SINTER_TRY(status(api.preference_create(preference.receive()), "cublasLtMatmulPreferenceCreate"));
  SINTER_TRY(set_preferences(preference.get()));
  SINTER_CHECK(wanted > 0 && wanted <= kMaxProposals, "{} proposals", wanted);
  std::array<Api::Heuristic, kMaxProposals> results = {};
  int found = 0;
  const int code = api.heuristics(library_->handle(), matmul_.get(), a_.get(), b_.get(), d_.get(),
                                  d_.get(), preference.get(), wanted, results.data(), &found);
  if (code == Api::kNotSupported) return {};
  SINTER_TRY(status(code, "cublasLtMatmulAlgoGetHeuristic"));
  for (const Api::Heuristic& result : llvm::ArrayRef(results).take_front(found)) {
    if (result.status != Api::kSuccess || result.workspace_bytes > kGemmWorkspaceBytes) continue;
    SINTER_LET(algorithm, describe(result.algorithm));
    // The preference is a filter of proposals; here the algorithm itself says how it joins sums.
    if ((algorithm[Api::kConfigReduction] & ~reductions_) != 0) continue;
    const GemmChoice choice{GemmChoice::Kind::cublaslt, algorithm, result.workspace_bytes, 0};
    if (llvm::is_contained(proposals_, choice)) continue;
    proposals_.push_back(choice);
    algorithms_.push_back(result.algorithm);
  }
  return {};
}

Result<CublasLtAlgorithm> CublasLtProduct::describe(const Api::Algorithm& algorithm) const {
  CublasLtAlgorithm fields = {};
  for (int attribute = 0; attribute < static_cast<int>(fields.size()); ++attribute) {
    const bool half = attribute == Api::kConfigInnerShape || attribute == Api::kConfigClusterShape;
    uint16_t narrow = 0;
    uint32_t wide = 0;
    size_t written = 0;
    SINTER_TRY(status(library_->api().config_get(&algorithm, attribute,
                                                 half ? static_cast<void*>(&narrow) : &wide,
                                                 half ? sizeof(narrow) : sizeof(wide), &written),
                      "cublasLtMatmulAlgoConfigGetAttribute"));
    fields[static_cast<size_t>(attribute)] = half ? narrow : wide;
  }
  return fields;
}

Status CublasLtProduct::run(size_t proposal, const GemmPlace& place, CudaAddress workspace,
                            CudaApi::Stream stream) {
  if (call_.bias) SINTER_TRY(set_bias(place.bias));
  // Without a residual D stands for C too, which is then not read.
  const float one = 1, beta = call_.residual ? 1 : 0;
  const CudaAddress c = call_.residual ? place.residual : place.c;
  const auto pointer = [](CudaAddress address) { return reinterpret_cast<void*>(address); };
  const CudaAddress a = call_.swapped ? place.b : place.a, b = call_.swapped ? place.a : place.b;
  return status(
      library_->api().multiply(library_->handle(), matmul_.get(), &one, pointer(a), a_.get(),
                               pointer(b), b_.get(), &beta, pointer(c), d_.get(), pointer(place.c),
                               d_.get(), &algorithms_[proposal], pointer(workspace),
                               proposals_[proposal].workspace_bytes, stream),
      "cublasLtMatmul");
}

}  // namespace sinter
