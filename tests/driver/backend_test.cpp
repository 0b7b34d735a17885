// The choice of a device, on a machine without one or with its devices hidden.
#include "driver/backend.h"

#include <doctest/doctest.h>

#include <cstdlib>

namespace sinter::backend_test {
namespace {

Result<std::shared_ptr<Backend>> open(const std::string& device) {
  setenv("CUDA_VISIBLE_DEVICES", "-1", 1);  // before the driver is first asked
  return Backend::open({.device = device, .record = {}, .progress = {}});
}

TEST_CASE("auto takes the CPU where there is no GPU, and says why") {
  const auto backend = open("auto");
  REQUIRE_MESSAGE(backend.has_value(), (backend ? "" : backend.error().message()));
  CHECK((*backend)->name() == "cpu");
  CHECK_FALSE((*backend)->on_gpu());
  CHECK((*backend)->target("sm_80") == "sm_80");
  CHECK((*backend)->record().choices.empty());
  // Without a driver: what was sought; with one: what it answered.
  const std::string& why = (*backend)->why();
  CAPTURE(why);
  CHECK((why.find("driver") != std::string::npos || why.find("NO_DEVICE") != std::string::npos));
}

TEST_CASE("a GPU that was asked for is a GPU or an error") {
  for (const char* device : {"cuda", "cuda:0", "cuda:17"}) {
    CAPTURE(device);
    const auto backend = open(device);
    REQUIRE_FALSE(backend);
    CHECK(backend.error().code == ExitCode::device);
  }
}

TEST_CASE("no other devices have names") {
  for (const char* device :
       {"", "gpu", "CPU", "cuda:", "cuda:x", "cuda:-1", "cuda:1x", "cuda0", "cuda:99999999999"}) {
    CAPTURE(device);
    const auto backend = open(device);
    REQUIRE_FALSE(backend);
    CHECK(backend.error().code == ExitCode::usage);
    CHECK(backend.error().message().find("auto, cpu, cuda or cuda:N") != std::string::npos);
  }
}

TEST_CASE("the CPU is taken as asked") {
  const auto backend = open("cpu");
  REQUIRE(backend);
  CHECK((*backend)->name() == "cpu");
  CHECK((*backend)->why() == "as asked");
}

}  // namespace
}  // namespace sinter::backend_test
