// From a path on the command line to a Module: the one door of all frontends.
#pragma once

#include <functional>
#include <memory>

#include "frontends/model/model_spec.h"
#include "ir/tensor_source.h"

namespace sinter {

struct LoadOptions {
  std::optional<DType> dtype;              // compute in this type, whatever the model's own is
  std::optional<uint64_t> random_weights;  // a seed: stand-in weights, the model's own stay unread
  /// A safetensors file, or a folder with weights (open_weights); its tensors are read in place of
  /// the model's own. Not together with random_weights.
  std::optional<std::string> weights = {};
  std::optional<StreamingCache>
      streaming;  // keep keys and values so; language models with rotary positions
  /// Sequences that decode together at most, 1 to kMaxSequences; of a language model.
  int64_t sequences = kUsualSequences;
  /// Longest text of the run. Decides where a model has two sets of frequencies (longrope): texts
  /// up to the original context have the short factors and the model no more positions than that; a
  /// larger value here means the long factors, for texts of any length.
  int64_t context = 0;
  /// Keys of a Hugging Face config that are not read and would be refused.
  std::vector<std::string> ignored_keys = {};
  /// Gets what a reader should know of a model that loads all the same, a line each.
  std::function<void(const std::string&)> note = {};
};

struct Model {
  std::optional<ModelSpec> spec;  // absent for a .sir module
  Module module;
  std::shared_ptr<const TensorSource> tensors;  // null: the model has no weights
  std::string origin;                           // the path, for messages
  /// Settings of the folder for generating text that are not applied and would change the likeliest
  /// text.
  std::vector<std::string> unapplied = {};
  /// Table and output projection of a tied model whose files hold both: `tensors` compares the two
  /// when the table is read.
  std::optional<std::pair<std::string, std::string>> tied_tensors = {};
  /// The JSON object that says how the files' weights are quantized (read_quantization_text);
  /// `tensors` are CodeTensors of it. Empty: they are not.
  std::string quantization = {};
};

/// Whether the path is loaded as a module, which states its own element types: a .sir file or a
/// folder with model.sir.
bool is_module_path(const std::string& path);

/// Tokens that a model is given when a prompt is continued by `more`: the last one drawn is not
/// fed.
int64_t text_tokens(size_t prompt, int64_t more);

/// A note for the reader of a text of `context` tokens about a model with two sets of frequencies;
/// empty: nothing to note.
std::string context_note(const Model& model, int64_t context);

/// Whether a folder has the config of a model, or a module.
bool holds_model(const std::string& folder);
/// The error of a folder that has neither.
tl::unexpected<Error> refuse_no_model(const std::string& folder);

/// A hint for a path that does not exist; for a name like the hub's ones, how to download it.
std::string missing_model_hint(const std::string& path);

/// A Hugging Face folder, a GGUF file or a folder with one (gguf_model), a llama2.c file (.bin), a
/// spec (.json), a module (.sir), or a folder with a module model.sir and its weights. Reads
/// headers only: the types of all tensors that the weights need are checked, and that no tensor is
/// left over; no data is read. A folder without weight files, a spec and a module load with
/// `tensors` null unless the options give weights or a seed.
Result<Model> load_model(const std::string& path, const LoadOptions& options = {});

}  // namespace sinter
