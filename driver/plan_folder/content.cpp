#include "driver/plan_folder/content.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "driver/stored_plan/manifest.h"
#include "frontends/files/bounded_file.h"
#include "ir/c_locale.h"
#include "ir/never_destroyed.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxPlanBytes = uint64_t{1} << 30;

/// A discarded value for a text that is not JSON.
nlohmann::json parse(const std::string& text) {
  const CLocale numbers_with_a_point;
  return nlohmann::json::parse(text, nullptr, false);
}

/// Whatever its version: a plan.json that a Sinter wrote, or null.
nlohmann::json read_plan_json(const fs::path& folder) {
  const auto text = read_small_file((folder / "plan.json").string(), kMaxPlanBytes, FileRole::own);
  if (!text) return nullptr;
  nlohmann::json json = parse(*text);
  const bool written = json.is_object() && json.contains("format") && json["format"].is_object() &&
                       json["format"].contains("major") && json.contains("sinter");
  return written ? json : nlohmann::json();
}

/// Paths that the manifest names, whatever its version.
std::set<std::string> listed_files(const fs::path& folder) {
  std::set<std::string> files;
  const auto text =
      read_small_file((folder / kManifestFile).string(), kMaxPlanBytes, FileRole::own);
  if (!text) return files;
  const nlohmann::json json = parse(*text);
  if (!json.is_object() || !json.contains("files") || !json["files"].is_object()) return files;
  for (const auto& [path, hash] : json["files"].items()) files.insert(path);
  return files;
}

/// Paths of the CUDA texts that a plan names, without ".cu".
std::set<std::string> kernel_stems(const nlohmann::json& plan) {
  std::set<std::string> stems;
  if (!plan.is_object() || !plan.contains("kernels") || !plan["kernels"].is_array()) return stems;
  for (const nlohmann::json& kernel : plan["kernels"]) {
    if (!kernel.is_object() || !kernel.contains("file") || !kernel["file"].is_string()) continue;
    const std::string file = kernel["file"];
    if (file.ends_with(".cu")) stems.insert(file.substr(0, file.size() - 3));
  }
  return stems;
}

/// One of the paths is in the folder `path`.
bool is_folder_of(const std::string& path, const std::set<std::string>& paths) {
  const auto at = paths.lower_bound(path + "/");
  return at != paths.end() && at->starts_with(path + "/");
}

const std::regex& pattern(const char* text) {
  return never_destroyed([&] { return std::regex(text); });
}

/// `path`: relative to the plan's folder.
bool is_part(const std::string& path, bool is_file, bool is_folder,
             const std::set<std::string>& kernels, const std::set<std::string>& listed) {
  if (path == "ir" || path == "kernels" || path == kWeightFiles) return is_folder;
  if (path == "plan.json" || path == "fusion.json") return true;  // plan.json is judged by itself
  if (is_folder) return is_folder_of(path, listed);
  static const auto& dump = pattern("ir/[0-9]{2,}-[a-z0-9_]+\\.sir");
  static const auto& code = pattern("(kernels/[^/.]+)\\.(cu|[a-z0-9_]+\\.cubin)");
  static const auto& weights =
      pattern("weights/model(-[0-9]{5}-of-[0-9]{5})?\\.safetensors(\\.index\\.json)?");
  if (!is_file) return false;
  if (path == kManifestFile || listed.contains(path) || std::regex_match(path, weights))
    return true;
  if (std::regex_match(path, dump)) return true;
  std::smatch match;
  return std::regex_match(path, match, code) && kernels.contains(match[1]);
}

}  // namespace

Result<std::string> foreign_file(const fs::path& folder) {
  const std::set<std::string> kernels = kernel_stems(read_plan_json(folder)),
                              listed = listed_files(folder);
  std::string foreign;
  std::error_code error;
  // Links are not followed: one in place of a part is foreign.
  fs::recursive_directory_iterator it(folder, error), end;
  for (; !error && it != end; it.increment(error)) {
    const std::string path = it->path().lexically_relative(folder).string();
    const fs::file_type type = it->symlink_status(error).type();
    if (error) break;
    if (is_part(path, type == fs::file_type::regular, type == fs::file_type::directory, kernels,
                listed))
      continue;
    if (type == fs::file_type::directory) it.disable_recursion_pending();
    if (foreign.empty() || path < foreign) foreign = path;
  }
  if (error)
    return fail(fmt::format("cannot read: {}", error.message()), printable(folder.string(), 4096));
  return foreign;
}

bool holds_plan(const fs::path& folder) { return !read_plan_json(folder).is_null(); }

}  // namespace sinter
