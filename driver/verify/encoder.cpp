#include <algorithm>

#include "driver/embed/encode.h"
#include "driver/verify/parts.h"

namespace sinter {

Status verify_encoder(const Plans& plans, const ModelSpec& spec,
                      llvm::ArrayRef<std::vector<int32_t>> tokens, const ReferenceFile* reference,
                      bool small, bool on_gpu, DTypeReport& report) {
  const CallOptions run{.poison_freed = true,
                        .keep = plans.common_values("encode"),
                        .check_kernels = small && on_gpu};
  SINTER_LET(fused, encode(spec, *plans.fused, tokens, run));
  SINTER_LET(unfused, encode(spec, *plans.unfused, tokens, run));
  SINTER_TRY(compare_runs("encode", fused, unfused, report));
  if (reference) SINTER_TRY(reference->check(spec, fused, report));
  if (run.check_kernels) report.host_checked_calls = report.calls * 2;
  if (!small) return {};
  const DecoderCall call = pack_texts(spec, plans.module.symbols, tokens);
  return measure_float64(plans, "encode", call, fused.outputs[0], unfused.outputs[0], report);
}

}  // namespace sinter
