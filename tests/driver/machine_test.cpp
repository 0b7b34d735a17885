// The output of `devices`, with a driver that shows a given number of devices
// (tests/runtime/fake_driver.cpp).
#include "driver/machine.h"

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <vector>

namespace sinter::machine_test {
namespace {

/// `runs_on` in JSON; text says the same.
std::vector<std::string> runs_on(const char* devices, const char* broken) {
  REQUIRE(dlopen(SINTER_FAKE_DRIVER, RTLD_NOW) != nullptr);  // now it is "libcuda.so.1"
  setenv("SINTER_FAKE_DEVICES", devices, 1);
  setenv("SINTER_FAKE_BROKEN", broken, 1);
  const nlohmann::json json = nlohmann::json::parse(devices_json());
  CHECK(json["cuda_driver"] == true);
  const auto names = json["runs_on"].get<std::vector<std::string>>();
  const std::string text = devices_text();
  CAPTURE(text);
  CHECK(text.find("\nCUDA driver: libcuda.so.1\n") != std::string::npos);
  CHECK(text.ends_with(fmt::format("\nplans run on: {}\n", fmt::join(names, ", "))));
  return names;
}

using Names = std::vector<std::string>;

TEST_CASE("plans run on every GPU that the driver shows, and on the CPU") {
  CHECK(runs_on("1", "-1") == Names{"cuda:0 (Fake GPU 0)", "cpu"});
  CHECK(runs_on("3", "-1") ==
        Names{"cuda:0 (Fake GPU 0)", "cuda:1 (Fake GPU 1)", "cuda:2 (Fake GPU 2)", "cpu"});
}

TEST_CASE("without a GPU plans run on the CPU alone") { CHECK(runs_on("0", "-1") == Names{"cpu"}); }

TEST_CASE("a GPU that cannot be opened is none that plans run on, and keeps its number") {
  CHECK(runs_on("3", "1") == Names{"cuda:0 (Fake GPU 0)", "cuda:2 (Fake GPU 2)", "cpu"});
}

TEST_CASE("the devices that plans can be made for are named with what they do") {
  const nlohmann::json json = nlohmann::json::parse(devices_json());
  REQUIRE(json["targets"].size() >= 1);
  for (const nlohmann::json& target : json["targets"]) {
    CAPTURE(target);
    CHECK(target["name"].get<std::string>().starts_with("sm_"));
    CHECK(target["multiprocessors"] > 0);
    CHECK(target["memory_bytes_per_s"] > 1e11);
    CHECK(target["tensor_flops_per_s"] > 1e12);
    CHECK(devices_text().find("\n" + target["name"].get<std::string>() + " ") != std::string::npos);
  }
}

}  // namespace
}  // namespace sinter::machine_test
