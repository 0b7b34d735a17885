// A library that stands for one of CUDA's in tests: loaded at run time, with entry points of its
// own for what tests ask of it.
#pragma once

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace sinter {

class FakeLibrary {
 public:
  /// Loads the library at `path` if it is not there yet: from then on it is found by its soname.
  explicit FakeLibrary(const char* path) : library_(found(dlopen(path, RTLD_NOW))) {}

 protected:
  /// The entry point of this name; the program ends where there is none.
  template <typename Function>
  Function* ask(const char* name) const {
    return reinterpret_cast<Function*>(found(dlsym(library_, name)));
  }

 private:
  static void* found(void* item) {
    if (item) return item;
    std::fprintf(stderr, "fake library: %s\n", dlerror());
    std::abort();
  }
  void* library_;
};

}  // namespace sinter
