// Loading of libraries; system libraries stand for CUDA's.
#include "runtime/dynamic_library.h"

#include <doctest/doctest.h>

#include <cstdlib>

namespace sinter::dynamic_library_test {
namespace {

TEST_CASE(
    "a toolkit's library is sought by its bare names, then in every folder of every toolkit") {
  setenv("CUDA_HOME", "/first", 1);
  setenv("CUDA_PATH", "", 1);
  CHECK(toolkit_paths({"libx.so.2", "libx.so.1"}, {"extras", "lib64"}) ==
        std::vector<std::string>{
            "libx.so.2", "libx.so.1", "/first/extras/libx.so.2", "/first/extras/libx.so.1",
            "/first/lib64/libx.so.2", "/first/lib64/libx.so.1", "/usr/local/cuda/extras/libx.so.2",
            "/usr/local/cuda/extras/libx.so.1", "/usr/local/cuda/lib64/libx.so.2",
            "/usr/local/cuda/lib64/libx.so.1"});
  setenv("CUDA_PATH", "/second", 1);
  CHECK(toolkit_roots() == std::vector<std::string>{"/first", "/second", "/usr/local/cuda"});
  unsetenv("CUDA_HOME");
  unsetenv("CUDA_PATH");
}

/// Functions of libm, and one that is in no library.
struct Functions {
  double (*root)(double);
  int (*absent)();
};

TEST_CASE("the first library that loads is taken, and its functions can be called") {
  auto library = open_library("libm", {"libsinter_absent.so", "libm.so.6"}, "");
  REQUIRE_MESSAGE(library, library.error().message());
  constexpr LibraryFunction<Functions> kWanted[] = {{"sqrt", set_function<&Functions::root>}};
  const auto functions = library->functions(kWanted, "libm", "");
  REQUIRE(functions);
  CHECK(functions->root(9) == 3);
}

TEST_CASE("an absent library is an error with all that was tried") {
  const auto library =
      open_library("libx", {"libsinter_absent.so", "/absent/libx.so"}, "install it");
  REQUIRE_FALSE(library);
  CHECK(library.error().message() ==
        "libx cannot be loaded as any of libsinter_absent.so, /absent/libx.so; install it");
  CHECK(library.error().code == ExitCode::device);
}

TEST_CASE("the first function that a library lacks is named") {
  auto library = DynamicLibrary::open({"libm.so.6"});
  REQUIRE(library);
  constexpr LibraryFunction<Functions> kWanted[] = {
      {"sqrt", set_function<&Functions::root>},
      {"sinter_absent_function", set_function<&Functions::absent>},
      {"sinter_another", set_function<&Functions::absent>}};
  const auto all = library->functions(kWanted, "libm", "install a newer one", "some/place");
  REQUIRE_FALSE(all);
  CHECK(all.error().message() ==
        "some/place: libm has no sinter_absent_function; install a newer one");
  CHECK(all.error().code == ExitCode::device);
}

int loads = 0;
Result<int> load_well() { return ++loads, 7; }
Result<int> load_badly() { return ++loads, fail("not there"); }

TEST_CASE("what a load returned is kept, errors too") {
  const auto once = load_once<load_well>();
  REQUIRE(once);
  CHECK(**once == 7);
  CHECK(*load_once<load_well>() == *once);
  CHECK(load_once<load_badly>().error().what == "not there");
  CHECK_FALSE(load_once<load_badly>());
  CHECK(loads == 2);
}

}  // namespace
}  // namespace sinter::dynamic_library_test
