// Rounds the weights of a Hugging Face model to fewer bits: a folder that compressed-tensors
// describes, for Sinter, transformers and vLLM.
#pragma once

#include <functional>

#include "driver/opened_model.h"
#include "frontends/quantized/round.h"

namespace sinter {

struct QuantizeOptions {
  RoundedFormat format;
  bool head = false;                                   // the output projection, too
  bool embeddings = false;                             // the embedding tables, too
  std::vector<std::string> ignored_keys = {};          // LoadOptions::ignored_keys of `model`
  std::function<void(const std::string&)> stage = {};  // what begins; may be empty
};

struct QuantizedFolder {
  int64_t matrices = 0;
  int64_t elements = 0;                        // of them
  uint64_t bytes_before = 0, bytes_after = 0;  // of all tensors
};

/// Errors, before anything is written: no folder of Hugging Face with weights, weights that are
/// quantized already, matrices that compressed-tensors has no layout for, matrices of experts under
/// the names that transformers has in memory, rows that no group divides, an output projection
/// alone that is the embedding table, or `folder` stands and is not empty.
Status check_quantizable(const OpenedModel& model, const std::string& folder,
                         const QuantizeOptions& options);

/// Writes `folder`: the weights of all linears and experts in the blocks as codes, other tensors,
/// also of routers, as they are, a config that says so, the tokenizer's files. The folder is there
/// as a whole, and was read back, or not at all. Also an error: a weight that is not finite.
/// `model` passed check_quantizable().
Result<QuantizedFolder> quantize(const OpenedModel& model, const std::string& folder,
                                 const QuantizeOptions& options);

}  // namespace sinter
