// Weights in a plan's folder: computed when the plan is compiled, as the device holds them, so that
// loading is one pass over one file after another.
#pragma once

#include "driver/stored_plan/manifest.h"

namespace sinter {

/// Weights of a frozen module that are made of files become tensors of files themselves, of their
/// own names and types. Others are constants, which are computed when they are loaded.
void embed_weights(Module& frozen);

/// Computes the weights of `weights` that are made of files and writes them in their order to
/// `folder`, which must exist: model.safetensors, or several files of about 4 GiB and their index.
Result<EmbeddedWeights> write_embedded(llvm::ArrayRef<Weight> weights, const TensorSource* source,
                                       const std::string& folder);

}  // namespace sinter
