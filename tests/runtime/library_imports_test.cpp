// A library's imports lead elsewhere; the rest of the process calls the original.
#include "runtime/library_imports.h"

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <unistd.h>

namespace sinter::library_imports_test {
namespace {

pid_t replacement() { return -7; }

void check(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != nullptr);
  const auto called = reinterpret_cast<int (*)()>(dlsym(library, "called"));
  const auto through_pointer =
      reinterpret_cast<int (*)()>(dlsym(library, "called_through_pointer"));
  REQUIRE((called != nullptr && through_pointer != nullptr));
  CHECK(called() == getppid());
  CHECK(replace_import(library, "no_such_function", reinterpret_cast<void*>(&replacement)) == 0);
  CHECK(replace_import(library, "called", reinterpret_cast<void*>(&replacement)) == 0);
  CHECK(called() == getppid());
  CHECK(replace_import(library, "getppid", reinterpret_cast<void*>(&replacement)) >= 1);
  CHECK(called() == -7);
  CHECK(through_pointer() == -7);
  CHECK(getppid() > 0);
}

TEST_CASE("a library calls the replacement of its import") { check(SINTER_IMPORT_CALLER); }

TEST_CASE("a library whose tables are read-only, too") { check(SINTER_IMPORT_CALLER_READ_ONLY); }

}  // namespace
}  // namespace sinter::library_imports_test
