// The architectures of GGUF that are read: general.architecture, and what the model is in terms of
// a Hugging Face config.
#pragma once

#include <llvm/ADT/ArrayRef.h>

#include "frontends/gguf/gguf_file.h"

namespace sinter {

/// A metadata key after "ARCHITECTURE." and the member of config.json with the same value; empty:
/// the key says nothing that the config needs.
struct GgufKey {
  std::string_view key, member;
};

struct GgufArchitecture {
  std::string_view name;              // general.architecture
  std::string_view model_type;        // of config.json
  llvm::ArrayRef<GgufKey> keys = {};  // before those of all architectures
  bool interleaved = false;           // rows of q and k are stored with neighbours as rotary pairs
  bool plus_one = false;              // norms are stored as 1 + weight
  bool biases = false;                // the family has attention_bias, which its tensors say
  bool mlp_biases = false;            // the family has mlp_bias
  std::string_view partial = {};      // the member for the part of a head that rotates
};

/// The row of a file's architecture. Errors: the file is no model (an adapter, a projector), or of
/// an architecture that is not read.
Result<const GgufArchitecture*> gguf_architecture(const GgufFile& file);

/// A rule of names: the tensor of a weight, by its key in a WeightMap.
struct GgufName {
  std::string_view weight, tensor;
};
llvm::ArrayRef<GgufName> gguf_names();

}  // namespace sinter
