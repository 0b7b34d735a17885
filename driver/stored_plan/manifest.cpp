#include "driver/stored_plan/manifest.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "driver/integers.h"
#include "frontends/files/json.h"
#include "frontends/model/spec_json.h"
#include "ir/c_locale.h"
#include "kernels/library.h"
#include "plan/plan_file.h"

namespace sinter {
namespace {

using Json = nlohmann::ordered_json;
using NamedTexts = std::vector<std::pair<std::string, std::string>>;

constexpr std::string_view kNoHash = "00000000000000000000000000000000";
constexpr std::string_view kManifestName = "sinter.manifest";

Json weights_json(const StoredWeights& weights) {
  if (const auto* seeded = std::get_if<SeededWeights>(&weights))
    return {{"from", "seed"}, {"seed", std::to_string(seeded->seed)}};
  if (const auto* embedded = std::get_if<EmbeddedWeights>(&weights))
    return {{"from", "plan"}, {"hashes", embedded->hashes}};
  const auto* files = std::get_if<WeightFiles>(&weights);
  if (!files) return {{"from", "nowhere"}};
  Json json = {{"from", "files"}, {"paths", files->paths}, {"fingerprints", files->fingerprints}};
  json["tied"] = files->tied ? Json({files->tied->first, files->tied->second}) : Json();
  if (!files->quantization.empty()) json["quantization"] = files->quantization;
  return json;
}

Json spec_of(const ModelSpec& spec) {
  const CLocale numbers_with_a_point;
  return Json::parse(print_spec(spec));
}

bool is_hash(std::string_view text) {
  return text.size() == kNoHash.size() &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// A path that stays inside the folder.
bool is_inside(const std::string& text) {
  const std::filesystem::path path(text);
  if (text.empty() || path.is_absolute()) return false;
  return llvm::none_of(path, [](const auto& part) { return part == ".." || part == "."; });
}

class ManifestReader {
 public:
  explicit ManifestReader(const JsonDocument& document) : document_(document) {}

  Result<Manifest> run() {
    const JsonView root = document_.view();
    SINTER_TRY(read(root["sinter"], manifest_.writer));
    SINTER_TRY(read(root["kernel_library"], manifest_.kernel_library));
    SINTER_TRY(read(root["origin"], manifest_.origin));
    SINTER_TRY(read_compile(root["compile"]));
    SINTER_TRY(read_spec_and_cache(root));
    SINTER_TRY(read(root["unapplied"], manifest_.unapplied));
    SINTER_TRY(read_weights(root["weights"]));
    SINTER_TRY(read_hashes(root["files"], manifest_.files));
    for (const auto& [path, hash] : manifest_.files)
      if (!is_inside(path))
        return root["files"].fail(fmt::format("\"{}\" is no path in the folder", printable(path)));
    SINTER_TRY(read_file(root["module"], manifest_.module));
    SINTER_TRY(read_machine_code(root["machine_code"]));
    return std::move(manifest_);
  }

 private:
  static Status read(const JsonView& view, std::string& out) {
    SINTER_LET(text, view.string());
    out = std::move(text);
    return {};
  }
  static Status read(const JsonView& view, std::vector<std::string>& out) {
    SINTER_LET(items, view.array());
    for (size_t i = 0; i < items->size(); ++i) SINTER_TRY(read(view[i], out.emplace_back()));
    return {};
  }
  static Status read(const JsonView& view, std::pair<std::string, std::string>& out) {
    SINTER_LET(items, view.array());
    if (items->size() != 2) return view.mismatch("two names");
    SINTER_TRY(read(view[0], out.first));
    return read(view[1], out.second);
  }
  static Status read(const JsonView& view, NamedTexts& out) {
    SINTER_LET(items, view.array());
    for (size_t i = 0; i < items->size(); ++i) SINTER_TRY(read(view[i], out.emplace_back()));
    return {};
  }
  static Status read_hashes(const JsonView& view, std::map<std::string, std::string>& out) {
    SINTER_LET(members, view.object());
    for (const JsonMember& member : *members) {
      SINTER_TRY(read(view[member.key], out[member.key]));
      if (!is_hash(out[member.key])) return view[member.key].mismatch("32 hexadecimal digits");
    }
    return {};
  }
  static Status read_fusions(const JsonView& view, std::vector<int64_t>& out) {
    SINTER_LET(items, view.array());
    for (size_t i = 0; i < items->size(); ++i) {
      SINTER_LET(number, view[i].integer(0));
      if (!out.empty() && number <= out.back()) return view[i].mismatch("a larger number");
      out.push_back(number);
    }
    return {};
  }
  /// A path that `files` has.
  Status read_file(const JsonView& view, std::string& out) const {
    SINTER_TRY(read(view, out));
    if (!manifest_.files.contains(out)) return view.mismatch("one of the files");
    return {};
  }

  static Status read_recipe(const JsonView& view, Recipe& recipe) {
    SINTER_LET(products, view["products"].string());
    if (const auto parsed = parse_products(products))
      recipe.products = *parsed;
    else
      return view["products"].mismatch("auto, library or own");
    SINTER_LET(attention, view["attention"].string());
    if (const auto parsed = parse_attention(attention))
      recipe.attention = *parsed;
    else
      return view["attention"].mismatch("tiled, composed or relaxed");
    SINTER_LET(rounded, view["rounded_matrices"].boolean());
    if (rounded) recipe.codes = Recipe::Codes::rounded;
    SINTER_LET(invariant, view["invariant"].boolean_or(false));
    recipe.invariant = invariant;
    return {};
  }
  Status read_compile(const JsonView& view) {
    FusionOptions& fusion = manifest_.compile.fusion;
    SINTER_TRY(read(view["target"], manifest_.compile.target));
    SINTER_LET(numerics, view["numerics"].string());
    const std::optional<Numerics> parsed = parse_numerics(numerics);
    if (!parsed) return view["numerics"].mismatch("strict or fast");
    fusion.numerics = *parsed;
    SINTER_TRY(read(view["entries"], manifest_.compile.entries));
    SINTER_LET(fuse, view["fuse"].boolean());
    fusion.enabled = fuse;
    SINTER_LET(stop_after, view["stop_after"].integer(-1));
    fusion.stop_after = stop_after;
    if (view["fusions"].present()) SINTER_TRY(read_fusions(view["fusions"], fusion.only.emplace()));
    SINTER_LET(device_inputs, view["device_inputs"].boolean_or(false));
    manifest_.compile.device_inputs = device_inputs;
    SINTER_TRY(read_recipe(view, manifest_.compile.recipe));
    SINTER_TRY(read(view["require"], fusion.required));
    return read(view["forbid"], fusion.forbidden);
  }

  Status read_spec_and_cache(const JsonView& root) {
    const JsonView view = root["spec"];
    if (!view.present()) return {};
    SINTER_LET(spec, read_spec(JsonDocument{document_.file + "#/spec", *view.value()}));
    const JsonView streaming = root["streaming"];
    if (streaming.present()) {
      SINTER_LET(sink, streaming["sink"].integer(0, kLargestSize));
      SINTER_LET(window, streaming["window"].integer(1, kLargestSize));
      spec.streaming = StreamingCache{sink, window};
    }
    if (root["sequences"].present()) {
      SINTER_LET(sequences, root["sequences"].integer(1, kMaxSequences));
      spec.sequences = sequences;
    }
    manifest_.spec = std::move(spec);
    return {};
  }

  Status read_weights(const JsonView& view) {
    SINTER_LET(from, view["from"].string());
    if (from == "nowhere") return {};
    if (from == "seed") {
      SINTER_LET(text, view["seed"].string());
      const auto seed = parse_integer<uint64_t>(text, view["seed"].pointer());
      if (!seed) return view["seed"].mismatch("a seed of 64 bits");
      manifest_.weights = SeededWeights{*seed};
      return {};
    }
    if (from == "plan") return read_hashes(view["hashes"], embed().hashes);
    if (from != "files") return view["from"].mismatch("files, plan, seed or nowhere");
    WeightFiles files;
    SINTER_TRY(read(view["paths"], files.paths));
    SINTER_TRY(read(view["fingerprints"], files.fingerprints));
    for (size_t i = 0; i < files.paths.size(); ++i)
      if (!std::filesystem::path(files.paths[i]).is_absolute())
        return view["paths"][i].mismatch("an absolute path");
    for (size_t i = 0; i < files.fingerprints.size(); ++i)
      if (!is_hash(files.fingerprints[i]))
        return view["fingerprints"][i].mismatch("32 hexadecimal digits");
    if (files.paths.empty() || files.paths.size() != files.fingerprints.size())
      return view["fingerprints"].fail(fmt::format("{} fingerprints of {} files",
                                                   files.fingerprints.size(), files.paths.size()));
    if (view["tied"].present()) SINTER_TRY(read(view["tied"], files.tied.emplace()));
    if (view["quantization"].present()) SINTER_TRY(read(view["quantization"], files.quantization));
    manifest_.weights = std::move(files);
    return {};
  }
  EmbeddedWeights& embed() { return manifest_.weights.emplace<EmbeddedWeights>(); }

  Status read_machine_code(const JsonView& view) {
    SINTER_LET(archs, view.object());
    for (const JsonMember& arch : *archs) {
      SINTER_LET(kernels, view[arch.key].object());
      auto& code = manifest_.machine_code[arch.key];
      for (const JsonMember& kernel : *kernels)
        SINTER_TRY(read_file(view[arch.key][kernel.key], code[kernel.key]));
    }
    return {};
  }

  const JsonDocument& document_;
  Manifest manifest_;
};

/// Where the digits of the file's own hash begin.
std::optional<size_t> hash_place(std::string_view text) {
  constexpr std::string_view kMember = "\"hash\": \"";
  const size_t at = text.find(kMember);
  if (at == text.npos || !is_hash(text.substr(at + kMember.size(), kNoHash.size())))
    return std::nullopt;
  return at + kMember.size();
}

/// The version of the format. An older file has it instead of the format's name.
Result<int64_t> format_version(const JsonView& root) {
  const auto name = root["format"].string();
  if (!name) return root["format"].integer();
  if (*name != kManifestName) return root["format"].mismatch(fmt::format("\"{}\"", kManifestName));
  return root["version"].integer();
}

tl::unexpected<Error> damaged(const std::string& file, std::string what) {
  return fail(std::move(what), file, "the folder is damaged: compile the model again");
}

}  // namespace

std::string kernel_library_hash() {
  std::string text;
  for (const EmbeddedHeader& header : kernel_library())
    text += fmt::format("{} {}\n{}", header.name, header.text.size(), header.text);
  return content_hash(text);
}

std::string write_manifest(const Manifest& manifest) {
  const FusionOptions& fusion = manifest.compile.fusion;
  const Recipe& recipe = manifest.compile.recipe;
  const auto& spec = manifest.spec;
  Json json;
  json["format"] = kManifestName;
  json["version"] = kManifestFormat;
  json["sinter"] = manifest.writer;
  json["hash"] = kNoHash;
  json["kernel_library"] = manifest.kernel_library;
  json["origin"] = manifest.origin;
  json["module"] = manifest.module;
  json["compile"] = {{"target", manifest.compile.target},
                     {"numerics", to_string(fusion.numerics)},
                     {"entries", manifest.compile.entries},
                     {"fuse", fusion.enabled},
                     {"stop_after", fusion.stop_after},
                     {"require", fusion.required},
                     {"forbid", fusion.forbidden},
                     {"device_inputs", manifest.compile.device_inputs},
                     {"products", to_string(recipe.products)},
                     {"attention", to_string(recipe.attention)},
                     {"rounded_matrices", recipe.codes == Recipe::Codes::rounded}};
  if (recipe.invariant) json["compile"]["invariant"] = true;
  if (fusion.only) json["compile"]["fusions"] = *fusion.only;
  json["spec"] = spec ? spec_of(*spec) : Json();
  json["streaming"] = Json();
  if (spec && spec->streaming)
    json["streaming"] = {{"sink", spec->streaming->sink}, {"window", spec->streaming->window}};
  if (spec && spec->sequences != kUsualSequences) json["sequences"] = spec->sequences;
  json["unapplied"] = manifest.unapplied;
  json["weights"] = weights_json(manifest.weights);
  json["machine_code"] = manifest.machine_code;
  json["files"] = manifest.files;
  return with_hash(json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

std::string with_hash(std::string text) {
  const std::optional<size_t> at = hash_place(text);
  if (!at) return text;
  text.replace(*at, kNoHash.size(), kNoHash);
  return text.replace(*at, kNoHash.size(), content_hash(text));
}

Result<Manifest> read_manifest(std::string_view text, const std::string& file) {
  SINTER_LET(document, parse_json(text, file));
  const JsonView root = document.view();
  SINTER_LET(format, format_version(root));
  if (format != kManifestFormat) {
    const auto writer = root["sinter"].string();
    return root["format"].fail(
        fmt::format("format {} of a plan's folder, written by sinter {}; this is sinter {}, which "
                    "reads format {}",
                    format, writer ? printable(*writer) : "of an unknown version", SINTER_VERSION,
                    kManifestFormat),
        "compile the model again");
  }
  SINTER_LET(hash, root["hash"].string());
  const std::optional<size_t> at = hash_place(text);
  if (!at || with_hash(std::string(text)).substr(*at, hash.size()) != hash)
    return damaged(file, fmt::format("the file's hash is not the one in it, {}", printable(hash)));
  return ManifestReader(document).run();
}

}  // namespace sinter
