// manifest.json of a plan's folder: what the plan needs beside plan.json, and a hash of every file.
//
//   {
//     "format": "sinter.manifest", "version": 2,
//     "sinter": "0.1.0",               version of the writer
//     "hash": "…",                     of this file, with zeros in place of these 32 digits
//     "kernel_library": "…",           hash of the headers that the kernels' text includes
//     "origin": "llama",               the model, as it was given
//     "module": "ir/00-input.sir",     what was compiled, before the passes
//     "compile": {"target": "sm_90a", "numerics": "strict", "entries": ["decode"],
//                 "fuse": true, "stop_after": -1, "require": [["a", "b"]], "forbid": [],
//                 "device_inputs": false, "products": "auto", "attention": "composed",
//                 "rounded_matrices": false,
//                 "fusions": [0, 1, 5]},   those that were made; absent: all
//     "spec": {…},                     spec_json.h; null: a module
//     "streaming": {"sink": 4, "window": 1020},                          or null
//     "sequences": 64,                 that decode together; absent: the usual 8
//     "unapplied": ["repetition_penalty"],
//     "weights": {"from": "files", "paths": ["/models/llama/model.safetensors"],
//                 "fingerprints": ["…"], "tied": ["embed", "head"]},     or
//                {"from": "plan", "hashes": {"embed.weight": "…"}},      or
//                {"from": "seed", "seed": "1"},                          or
//                {"from": "nowhere"},
//     "machine_code": {"sm_90a": {"…": "kernels/add_3f2a.sm_90a.cubin"}},  by the text's hash
//     "files": {"plan.json": "…"}      hashes; embedded weights have theirs above
//   }
//
// Hashes are content_hash() (plan_file.h). They find damage. They do not stop an attacker, who can
// write a manifest that fits.
#pragma once

#include <map>
#include <variant>

#include "driver/compile/compile.h"
#include "frontends/load_model.h"

namespace sinter {

/// Files of the model, which stay where they are. A plan takes them only if their fingerprints are
/// the same.
struct WeightFiles {
  std::vector<std::string> paths;         // absolute, in the order of TensorSource::files()
  std::vector<std::string> fingerprints;  // one for each path (fingerprint.h)
  std::optional<std::pair<std::string, std::string>> tied;  // Model::tied_tensors
  std::string quantization;                                 // Model::quantization
};
/// Tensors in the folder `weights` of the plan, one for each weight that is made of files, under
/// the weight's name and in its type.
struct EmbeddedWeights {
  std::map<std::string, std::string> hashes;  // by name
};
struct SeededWeights {
  uint64_t seed = 0;
};
struct NoWeights {};
using StoredWeights = std::variant<NoWeights, SeededWeights, WeightFiles, EmbeddedWeights>;

struct Manifest {
  std::string writer;          // version of Sinter
  std::string kernel_library;  // kernel_library_hash()
  std::string origin;
  std::string module;      // path of the module
  CompileOptions compile;  // without forms, which record.json has
  std::optional<ModelSpec> spec;
  std::vector<std::string> unapplied;
  StoredWeights weights;
  /// Machine code by architecture and by the hash of the kernel's text: paths in the folder.
  std::map<std::string, std::map<std::string, std::string>> machine_code;
  std::map<std::string, std::string> files;  // hashes by path
};

inline constexpr const char *kManifestFile = "manifest.json", *kRecordFile = "record.json",
                            *kModelFiles = "model", *kWeightFiles = "weights",
                            *kHeaderFiles = "include";
inline constexpr int64_t kManifestFormat = 2;

/// Hash of the headers that this program's kernels include: text of another library may mean
/// something else.
std::string kernel_library_hash();

std::string write_manifest(const Manifest& manifest);
/// The text of a manifest with the hash that belongs to it, where the text has some hash.
std::string with_hash(std::string text);
/// `file`: what errors call it. Errors: damage, another format, what does not belong together.
Result<Manifest> read_manifest(std::string_view text, const std::string& file);

}  // namespace sinter
