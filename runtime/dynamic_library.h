// Shared libraries that are found and loaded at run time.
#pragma once

#include <llvm/ADT/ArrayRef.h>

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "ir/error.h"
#include "ir/never_destroyed.h"

namespace sinter {

/// A function of a library, and how a table of its functions takes it.
template <typename Table>
struct LibraryFunction {
  const char* name;
  void (*set)(Table&, void* function);
};

/// Sets a member of a table, for LibraryFunction::set.
template <auto member, typename Table>
void set_function(Table& table, void* function) {
  auto& slot = table.*member;
  slot = reinterpret_cast<std::remove_reference_t<decltype(slot)>>(function);
}

/// A loaded library. It stays loaded until the program ends, so that its functions can be called
/// from anywhere.
class DynamicLibrary {
 public:
  /// The first of `paths` that can be loaded, if any. A bare name is sought where the dynamic
  /// loader looks.
  static std::optional<DynamicLibrary> open(llvm::ArrayRef<std::string> paths);

  /// The table of these functions. The error, exit code 5, names the first that the library does
  /// not have: "TITLE has no NAME".
  template <typename Table, size_t count>
  Result<Table> functions(const LibraryFunction<Table> (&wanted)[count], std::string_view title,
                          std::string hint, std::string where = {}) const {
    Table table{};
    for (const LibraryFunction<Table>& one : wanted) {
      void* function = find(one.name);
      if (!function) return lacks(one.name, title, std::move(hint), std::move(where));
      one.set(table, function);
    }
    return table;
  }
  /// Makes the library call `replacement` for its import `name` (library_imports.h).
  void replace(const char* name, void* replacement) const;

 private:
  explicit DynamicLibrary(void* handle) : handle_(handle) {}
  void* find(const char* name) const;
  static tl::unexpected<Error> lacks(const char* name, std::string_view title, std::string hint,
                                     std::string where);

  void* handle_;
};

/// Where a CUDA toolkit may be: $CUDA_HOME, $CUDA_PATH and /usr/local/cuda, in this order.
std::vector<std::string> toolkit_roots();

/// The names by which the dynamic loader is asked for a library of a CUDA toolkit, in order: the
/// bare `names`, then the names in each of `folders` of each toolkit.
std::vector<std::string> toolkit_paths(llvm::ArrayRef<const char*> names,
                                       llvm::ArrayRef<const char*> folders);

/// Opens the first of `paths`. The error, exit code 5, calls the library `title` and lists the
/// paths.
Result<DynamicLibrary> open_library(std::string_view title, llvm::ArrayRef<std::string> paths,
                                    std::string hint);

/// The result of the first call of `load`, a function that returns a Result. Thread-safe.
template <auto load>
auto load_once() -> Result<const typename std::invoke_result_t<decltype(load)>::value_type*> {
  static const auto& loaded = never_destroyed(load);
  if (!loaded) return tl::make_unexpected(loaded.error());
  return &*loaded;
}

}  // namespace sinter
