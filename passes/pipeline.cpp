#include "passes/pipeline.h"

#include "ir/verifier.h"
#include "passes/canonicalize.h"
#include "passes/check_rows.h"
#include "passes/choose_kernels.h"
#include "passes/expand_attention.h"
#include "passes/materialize.h"
#include "passes/merge_linears.h"

namespace sinter {
namespace {

constexpr Pass kPipeline[] = {
    {"canonicalize", canonicalize},     {"merge_linears", merge_linears},
    {"choose_kernels", choose_kernels}, {"expand_attention", expand_attention},
    {"materialize", materialize},       {"cleanup", canonicalize},
    {"check_rows", check_rows},
};

}  // namespace

llvm::ArrayRef<Pass> pipeline() { return kPipeline; }

void run_pass(const Pass& pass, Module& module) {
  pass.run(module);
  const Status valid = verify(module);
  SINTER_CHECK(valid.has_value(), "after {}: {}", pass.name, valid.error().message());
}

void run_passes(Module& module, const PassObserver& observer) {
  for (const Pass& pass : pipeline()) {
    run_pass(pass, module);
    if (observer) observer(pass.name, module);
  }
}

}  // namespace sinter
