// The files of a Hugging Face folder that transformers and sentence-transformers read, and what
// becomes of each here.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sinter {

enum class FileUse : uint8_t {
  read,
  refused,         // the folder is an error: the file changes results
  ignored,         // it changes no result here
  ignored_beside,  // where `other` stands, which counts; read or refused without it
};

struct FolderFile {
  std::string_view name;
  FileUse use;
  std::string_view other = {};
};

std::span<const FolderFile> folder_files();

/// The names of the table that `folder` has and that change nothing there.
std::vector<std::string> ignored_files(const std::string& folder);

}  // namespace sinter
