#include "runtime/dynamic_library.h"

#include <dlfcn.h>

#include <cstdlib>

#include "runtime/library_imports.h"

namespace sinter {

std::optional<DynamicLibrary> DynamicLibrary::open(llvm::ArrayRef<std::string> paths) {
  for (const std::string& path : paths)
    if (void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return DynamicLibrary(handle);
  return std::nullopt;
}

void* DynamicLibrary::find(const char* name) const { return dlsym(handle_, name); }

void DynamicLibrary::replace(const char* name, void* replacement) const {
  replace_import(handle_, name, replacement);
}

tl::unexpected<Error> DynamicLibrary::lacks(const char* name, std::string_view title,
                                            std::string hint, std::string where) {
  return fail(fmt::format("{} has no {}", title, name), std::move(where), std::move(hint),
              ExitCode::device);
}

std::vector<std::string> toolkit_roots() {
  std::vector<std::string> roots;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* root = std::getenv(variable); root != nullptr && *root != 0)
      roots.emplace_back(root);
  roots.emplace_back("/usr/local/cuda");
  return roots;
}

std::vector<std::string> toolkit_paths(llvm::ArrayRef<const char*> names,
                                       llvm::ArrayRef<const char*> folders) {
  std::vector<std::string> paths(names.begin(), names.end());
  for (const std::string& root : toolkit_roots())
    for (const char* folder : folders)
      for (const char* name : names) paths.push_back(fmt::format("{}/{}/{}", root, folder, name));
  return paths;
}

Result<DynamicLibrary> open_library(std::string_view title, llvm::ArrayRef<std::string> paths,
                                    std::string hint) {
  if (auto library = DynamicLibrary::open(paths)) return std::move(*library);
  return fail(fmt::format("{} cannot be loaded as any of {}", title, fmt::join(paths, ", ")), {},
              std::move(hint), ExitCode::device);
}

}  // namespace sinter
