// Forms of a record that no kernel can have are refused by name, with their place in the file.
#include "kernels/check_forms.h"

#include <doctest/doctest.h>

namespace sinter::check_forms_test {

TEST_CASE("the numbers of gemv's forms have ranges") {
  const std::string key = "bf16[4096, 11008] splits=1 tokens=8";
  const auto message = [&](std::map<std::string, int64_t> numbers) {
    const Status status = check_forms({{"gemv", {{key, {std::move(numbers), 0}}}}}, "r.json");
    return status ? "" : status.error().message();
  };
  const auto form = [](int64_t warps, int64_t stage_bytes, int64_t stages) {
    return std::map<std::string, int64_t>{
        {"warps", warps}, {"stage_bytes", stage_bytes}, {"stages", stages}};
  };
  const std::string at = "r.json:/forms/gemv/" + key, hint = "; write the record anew by tuning";
  CHECK(message(form(8, 5120, 3)).empty());
  CHECK(message(form(16, 16384, 8)).empty());
  CHECK(message(form(4, 5120, 3)) == at + "/warps: expected 8 or 16, got 4" + hint);
  CHECK(message(form(32, 5120, 3)) == at + "/warps: expected 8 or 16, got 32" + hint);
  const std::string stages = at + "/stage_bytes: expected a multiple of 16, at most 16384, got ";
  CHECK(message(form(8, 5000, 3)) == stages + "5000" + hint);
  CHECK(message(form(8, 0, 3)) == stages + "0" + hint);
  CHECK(message(form(8, 16896, 3)) == stages + "16896" + hint);
  CHECK(message(form(8, 5120, 1)) == at + "/stages: expected 2 to 8, got 1" + hint);
  CHECK(message(form(8, 5120, 9)) == at + "/stages: expected 2 to 8, got 9" + hint);
  CHECK(message({{"warps", 8}, {"stages", 3}}) == at + ": has no \"stage_bytes\"" + hint);
  auto more = form(8, 5120, 3);
  more["piece"] = 5120;
  CHECK(message(more) == at + "/piece: is no number of a gemv's form" + hint);
}

TEST_CASE("a record names families that have forms") {
  for (const char* family : {"row", "rows"}) {
    const Status status = check_forms({{family, {}}}, "r.json");
    REQUIRE_FALSE(status.has_value());
    CHECK(status.error().message() == std::string("r.json:/forms/") + family +
                                          ": no kernel family of this name has forms; write the "
                                          "record anew by tuning");
  }
}

}  // namespace sinter::check_forms_test
