// A compiled plan as a folder, which is a MODEL itself (stored_plan.h). docs/plan.md describes it.
//
//   plan.json                  the plan (plan_file.h)
//   manifest.json              what it needs beside, and hashes of all files (manifest.h)
//   fusion.json                the ledger (ledger.h)
//   ir/00-input.sir, ...       the module after each pass
//   kernels/NAME.cu            CUDA text
//   kernels/NAME.ARCH.cubin    machine code
//   include/...                the headers that kernels include, for other compilers than NVRTC
//   model/...                  the model's tokenizer, chat template and pooling
//   record.json                the decision record that it was compiled with
//   weights/*.safetensors      weights, if they were embedded
//
// A function of its arguments alone: equal plans of a model are equal byte for byte.
#pragma once

#include "driver/build.h"
#include "driver/compile/machine_code.h"
#include "driver/plan_folder/model_files.h"

namespace sinter {

/// The contents of a plan folder to write.
struct FolderRequest {
  const Built& built;  // for a folder
  llvm::ArrayRef<MachineCode> code;
  llvm::ArrayRef<ModelFile> model_files;
  std::string record;  // text of a decision record; empty: none
  std::optional<uint64_t> random_weights;
  bool embed = false;  // as in the BuildRequest
};

/// May a plan be written to `folder`? It must be absent in a folder that exists, empty, or hold a
/// plan and nothing else, in its folders neither.
Status check_plan_folder(const std::string& folder);

/// Writes a folder beside `folder` and then gives it that name, so that `folder` is always a whole
/// plan: the old one or the new one. Nothing but embedded weights is synced to disk: a plan can be
/// made again, and its reader checks it. Then removes what killed processes left beside `folder`.
Status write_plan_folder(const std::string& folder, const FolderRequest& request);

}  // namespace sinter
