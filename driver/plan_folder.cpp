#include "driver/plan_folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "driver/explain/ledger_report.h"
#include "driver/plan_folder_content.h"
#include "driver/temporary_folder.h"
#include "plan/plan_file.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;

std::string errno_text() { return std::generic_category().message(errno); }

Status write_file(const fs::path& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) return cannot_write(path, errno_text());
  return {};
}

/// Gives the finished folder its name; what had the name is left in `made` or gone.
Status put_in_place(TemporaryFolder& made, const fs::path& target) {
  // An absent or empty target is replaced by a plain rename, a plan by exchanging the two.
  if (::rename(made.path().c_str(), target.c_str()) == 0) {
    made.keep();
    return {};
  }
  if (errno != ENOTEMPTY && errno != EEXIST) return cannot_write(target, errno_text());
  if (::renameat2(AT_FDCWD, made.path().c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0)
    return {};
  // A file system that cannot exchange: for a moment the plan has another name.
  SINTER_LET(old, TemporaryFolder::beside(target));
  if (::rename(target.c_str(), old.path().c_str()) != 0) {
    return cannot_write(target, errno_text());
  }
  if (::rename(made.path().c_str(), target.c_str()) != 0) {
    const std::string why = errno_text();
    if (::rename(old.path().c_str(), target.c_str()) == 0) old.keep();
    return cannot_write(target, why);
  }
  made.keep();
  return {};
}

/// The folder itself where `folder` is a link to it, without a slash at the end.
fs::path real_path(const std::string& folder) {
  std::error_code error;
  fs::path path = fs::weakly_canonical(folder, error);
  if (error) path = folder;
  return path.has_filename() ? path : path.parent_path();
}

}  // namespace

Status check_plan_folder(const std::string& folder) {
  const fs::path path = real_path(folder);
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (status.type() == fs::file_type::not_found) return {};
  const std::string hint = "give another folder with -o, or move this one away";
  if (status.type() != fs::file_type::directory)
    return fail("this is no folder", printable(folder, 4096), hint);
  SINTER_LET(foreign, foreign_file(path));
  const bool plan = holds_plan(path);
  if (!foreign.empty() && (plan || !foreign.starts_with("kernels/")))
    return fail(fmt::format("the folder holds {}, which is no part of a plan", printable(foreign)),
                printable(folder, 4096), hint);
  if (!plan && !fs::is_empty(path, error))
    return fail("the folder holds no plan.json of Sinter and is not empty", printable(folder, 4096),
                hint);
  return {};
}

Status write_plan_folder(const std::string& folder, const Built& built,
                         llvm::ArrayRef<MachineCode> code) {
  SINTER_TRY(check_plan_folder(folder));
  const fs::path target = real_path(folder);
  SINTER_LET(made, TemporaryFolder::beside(target));
  const fs::path& root = made.path();
  const Program& program = *built.compiled.program;
  for (const char* part : {"ir", "kernels"})
    if (::mkdir((root / part).c_str(), 0777) != 0) return cannot_write(root / part, errno_text());
  SINTER_TRY(write_file(root / "plan.json", write_plan(program)));
  SINTER_TRY(write_file(root / "fusion.json", ledger_json(built.compiled)));
  for (size_t i = 0; i < built.dumps.size(); ++i)
    SINTER_TRY(write_file(root / "ir" / fmt::format("{:02}-{}.sir", i, built.dumps[i].pass),
                          built.dumps[i].text));
  for (size_t k = 0; k < program.kernels.size(); ++k) {
    const Kernel& kernel = program.kernels[k];
    SINTER_TRY(write_file(root / kernel_path(kernel), kernel.source));
    for (const MachineCode& c : code)
      if (c.absent.empty())
        SINTER_TRY(write_file(root / "kernels" / fmt::format("{}.{}.cubin", kernel.name, c.arch),
                              c.cubins[k]));
  }
  SINTER_TRY(put_in_place(made, target));
  remove_leftovers(target);
  return {};
}

}  // namespace sinter
