#include <algorithm>

#include "driver/embed/encode.h"
#include "driver/verify/parts.h"

namespace sinter {

Status verify_encoder(const Plans& plans, const ModelSpec& spec, llvm::ArrayRef<TextList> calls,
                      const ReferenceFile* reference, bool small, bool on_gpu,
                      DTypeReport& report) {
  const CallOptions run{.poison_freed = true,
                        .keep = plans.common_values("encode"),
                        .check_kernels = small && on_gpu};
  std::vector<RunResult> fused, unfused;
  std::vector<DecoderCall> packed;
  for (const TextList texts : calls) {
    SINTER_LET(a, encode(spec, *plans.fused, texts, run));
    SINTER_LET(b, encode(spec, *plans.unfused, texts, run));
    SINTER_TRY(compare_runs("encode", a, b, report));
    b.kept.clear();
    fused.push_back(std::move(a));
    unfused.push_back(std::move(b));
    packed.push_back(pack_texts(spec, plans.module.symbols, texts));
  }
  if (reference) SINTER_TRY(reference->check(spec, fused, report));
  if (run.check_kernels) report.host_checked_calls = report.calls * 2;
  return small ? measure_float64(plans, "encode", packed, fused, unfused, report) : Status();
}

}  // namespace sinter
