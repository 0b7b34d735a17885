// The system's C++ compiler, called on kernel text.
#pragma once

#include <llvm/ADT/ArrayRef.h>

#include <filesystem>
#include <string>

#include "ir/error.h"

namespace sinter {

/// A folder that is removed with its contents.
class ScratchFolder {
 public:
  ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder();
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Reads, or writes, a whole file; a failure is a broken test machine.
std::string read_file(const std::filesystem::path& path);
void write_file(const std::filesystem::path& path, std::string_view text);

/// Identifies the compiler by all that decides its result besides the text and its headers: its
/// program, its flags, and what stands for CUDA ahead of all text.
std::string compiler_identity();

/// Runs the build's compiler with the flags of kernel text and `arguments` added.
Status run_compiler(llvm::ArrayRef<std::string> arguments, const std::filesystem::path& log);

}  // namespace sinter
