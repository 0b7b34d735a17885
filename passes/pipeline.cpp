#include "passes/pipeline.h"

#include "ir/verifier.h"
#include "passes/canonicalize.h"
#include "passes/choose_matvec.h"
#include "passes/expand_attention.h"
#include "passes/materialize.h"
#include "passes/merge_linears.h"

namespace sinter {

void run_passes(Module& module, const PassObserver& observer) {
  const auto run = [&](std::string_view name, bool (*pass)(Module&)) {
    pass(module);
    const Status valid = verify(module);
    SINTER_CHECK(valid.has_value(), "after {}: {}", name, valid.error().message());
    if (observer) observer(name, module);
  };
  run("canonicalize", canonicalize);
  run("merge_linears", merge_linears);
  run("expand_attention", expand_attention);
  run("choose_matvec", choose_matvec);
  run("materialize", materialize);
  run("cleanup", canonicalize);
}

}  // namespace sinter
