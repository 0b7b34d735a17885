// A compiled plan as a folder.
//
//   plan.json                  the plan (plan_file.h)
//   fusion.json                the ledger (ledger_report.h)
//   ir/00-input.sir, ...       the module after each pass
//   kernels/NAME.cu            CUDA text
//   kernels/NAME.ARCH.cubin    machine code
//
// A pure function of its arguments: equal plans are equal byte for byte.
#pragma once

#include "driver/compile/build.h"
#include "driver/compile/machine_code.h"

namespace sinter {

/// May a plan be written to `folder`? It must be absent, empty or hold a plan and nothing else, in
/// `ir` and `kernels` neither.
Status check_plan_folder(const std::string& folder);

/// Writes a folder beside `folder` and then gives it that name, so that `folder` is always a whole
/// plan: the old one or the new one. Nothing is synced to disk: a plan can be made again, and its
/// reader checks it. Then removes what killed processes left beside `folder`.
Status write_plan_folder(const std::string& folder, const Built& built,
                         llvm::ArrayRef<MachineCode> code);

}  // namespace sinter
