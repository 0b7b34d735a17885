// Ranges reach a tool that listens; without one there are none.
#include "runtime/cuda/nvtx.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "runtime/temporary_directory.h"

namespace sinter::nvtx_test {
namespace {

TEST_CASE("ranges are named after the values and nest") {
#ifdef SINTER_NVTX_TOOL
  const TemporaryDirectory folder;
  const std::string log = folder.path() + "/log";
  REQUIRE(setenv("NVTX_TOOL_LOG", log.c_str(), 1) == 0);
  REQUIRE(setenv("NVTX_INJECTION64_PATH", SINTER_NVTX_TOOL, 1) == 0);
  REQUIRE(nvtx_listens());
  {
    const NvtxRange outer({"l0.res1", "l0.norm2"});
    const NvtxRange inner({"l0.qkv"});
  }
  std::ifstream file(log);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  CHECK(text == "l0.res1, l0.norm2\nl0.qkv\n-\n-\n");
#else
  CHECK(!nvtx_listens());
  const NvtxRange range({"l0.res1"});
#endif
}

}  // namespace
}  // namespace sinter::nvtx_test
