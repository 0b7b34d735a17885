#include "driver/bisect/reproducer_folder.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/StringExtras.h>

#include <nlohmann/json.hpp>

#include "driver/temporary_folder.h"
#include "frontends/files/bounded_file.h"
#include "ir/c_locale.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAbout = "about.json";

/// Did a Sinter write the about.json of the folder?
bool is_made(const fs::path& folder) {
  constexpr uint64_t kMaxBytes = uint64_t{1} << 20;
  const auto text = read_small_file((folder / kAbout).string(), kMaxBytes, FileRole::own);
  if (!text) return false;
  const CLocale numbers_with_a_point;
  const auto about = nlohmann::json::parse(*text, nullptr, false);
  return about.is_object() && about.contains("sinter") && about.contains("fails_alone");
}

/// "op1", "fusion12".
bool is_further_folder(llvm::StringRef name) {
  return (name.consume_front("op") || name.consume_front("fusion")) && !name.empty() &&
         llvm::all_of(name, llvm::isDigit);
}

/// The least name of what is no part of a reproducer; empty: there is none.
std::string foreign_in(const fs::path& folder, bool has_folders) {
  std::error_code error;
  const bool made = is_made(folder), has_program = fs::exists(folder / "program.py", error) &&
                                                   fs::exists(folder / "operands.pt", error);
  const auto is_part = [&](const fs::directory_entry& entry) {
    const std::string name = entry.path().filename().string();
    const fs::file_type type = entry.symlink_status(error).type();
    if (type == fs::file_type::directory)
      return has_folders && is_further_folder(name) && foreign_in(entry.path(), false).empty();
    if (type != fs::file_type::regular) return false;
    if (name == "program.py" || name == "operands.pt") return has_program;
    return made && llvm::is_contained({"model.sir", "model.safetensors", "inputs.safetensors",
                                       "reproduce.sh", kAbout},
                                      name);
  };
  std::string foreign;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (const std::string name = it->path().filename().string();
        !is_part(*it) && (foreign.empty() || name < foreign))
      foreign = name;
  return foreign;
}

}  // namespace

Status check_reproducer_folder(const std::string& folder) {
  return check_output_folder(folder, [&](const fs::path& path) -> Status {
    const std::string foreign = foreign_in(path, true);
    if (foreign.empty()) return {};
    return fail(
        fmt::format("the folder holds {}, which is no part of a reproducer", printable(foreign)),
        printable(folder, 4096), "give another folder with --output, or move this one away");
  });
}

}  // namespace sinter
