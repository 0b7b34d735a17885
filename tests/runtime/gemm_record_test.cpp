// The record's file: what is written is read, and nothing else is.
#include "runtime/cuda/gemm_record.h"

#include <doctest/doctest.h>

#include <cmath>

namespace sinter::gemm_record_test {
namespace {

constexpr const char* kProduct = "bf16[4096, 11008] splits=1 tokens=8";

GemmRecord sample() {
  GemmRecord record{"NVIDIA H200", "cuBLASLt 130000", {}, {}};
  GemmChoice library{GemmChoice::Kind::cublaslt, {}, kGemmWorkspaceBytes, 0x1.9p-17};
  library.algorithm = {66, 393, 3, 2, 0, 1, 35, 0, 4294967295};
  record.choices["1x3x4096x64 A f16"] = library;
  record.choices["of a/b ~ \"quoted\""] = GemmChoice{};
  record.forms["gemv"][kProduct] = {{{"stages", 3}, {"warps", 8}}, 0x1.9p-9};
  record.forms["gemv"]["f32[2, 8] splits=1 tokens=1"] = {{{"stages", 4}, {"warps", 16}}, 0};
  return record;
}

TEST_CASE("written and read back, equal to the last bit; the text is canonical") {
  const GemmRecord record = sample();
  const std::string text = record.to_json();
  const auto read = GemmRecord::parse(text, "r.json");
  REQUIRE_MESSAGE(read.has_value(), (read ? "" : read.error().message()));
  CHECK(read->device == record.device);
  CHECK(read->library == record.library);
  CHECK(read->choices == record.choices);
  CHECK(read->forms == record.forms);
  CHECK(read->to_json() == text);
}

TEST_CASE("a record with the older header is read") {
  const std::string text = sample().to_json();
  std::string older = text;
  const std::string_view header = "\"format\": \"sinter.record\",\n \"version\": 2";
  older.replace(older.find(header), header.size(), "\"format\": 2");
  const auto read = GemmRecord::parse(older, "r.json");
  REQUIRE_MESSAGE(read.has_value(), (read ? "" : read.error().message()));
  CHECK(read->to_json() == text);
}

TEST_CASE("the text of forms; a record without them has no section, and is read") {
  GemmRecord record = sample();
  record.choices.clear();
  CHECK(record.to_json() == R"({
 "format": "sinter.record",
 "version": 2,
 "device": "NVIDIA H200",
 "library": "cuBLASLt 130000",
 "choices": {},
 "forms": {
  "gemv": {
   "bf16[4096, 11008] splits=1 tokens=8": {
    "stages": 3,
    "warps": 8,
    "seconds": 0.0030517578125
   },
   "f32[2, 8] splits=1 tokens=1": {
    "stages": 4,
    "warps": 16
   }
  }
 }
}
)");
  CHECK_FALSE(record.empty());
  record.forms.clear();
  CHECK(record.to_json().find("forms") == std::string::npos);
  CHECK(GemmRecord::parse(record.to_json(), "r.json")->forms.empty());
}

TEST_CASE("an empty record") {
  const auto read = GemmRecord::parse(GemmRecord().to_json(), "r.json");
  REQUIRE(read.has_value());
  CHECK(read->device.empty());
  CHECK(read->choices.empty());
}

/// The sample's text with `from` replaced, which stands in it.
std::string changed(std::string_view from, std::string_view to) {
  std::string text = sample().to_json();
  const size_t at = text.find(from);
  REQUIRE(at != text.npos);
  return text.replace(at, from.size(), to);
}

TEST_CASE("hostile records name the place") {
  const auto message = [](const std::string& text) {
    const auto read = GemmRecord::parse(text, "r.json");
    REQUIRE(!read);
    CHECK(read.error().code == ExitCode::bad_input);
    return read.error().message();
  };
  const std::string hint = "; write the record anew by tuning";
  const std::string item = "r.json:/choices/1x3x4096x64 A f16";
  CHECK(message("") == "r.json: not JSON" + hint);
  CHECK(message("{\"format\": 1") == "r.json: not JSON" + hint);
  CHECK(message("[]") == "r.json: expected an object, got []" + hint);
  CHECK(message("{}") == "r.json: has no \"format\"" + hint);
  CHECK(message(changed("\"version\": 2", "\"version\": 1")) ==
        "r.json:/version: expected format 2, got 1" + hint);
  CHECK(message(changed("sinter.record", "sinter.plan")) ==
        "r.json:/format: expected \"sinter.record\", got \\\"sinter.plan\\\"" + hint);
  CHECK(message("{\"format\": 1}") == "r.json:/format: expected format 2, got 1" + hint);
  CHECK(message("{\"format\": \"sinter.record\"}") == "r.json: has no \"version\"" + hint);
  CHECK(message(changed("\"NVIDIA H200\"", "7")) ==
        "r.json:/device: expected a string, got 7" + hint);
  CHECK(message(changed("\"cublaslt\"", "\"magic\"")) ==
        item + "/kind: expected \"own\" or \"cublaslt\", got \\\"magic\\\"" + hint);
  const std::string algorithm = item + "/algorithm";
  CHECK(message(changed("\"id\": 66", "\"id\": -1")) ==
        algorithm + "/id: expected an integer of 0..4294967295, got -1" + hint);
  CHECK(message(changed("4294967295", "4294967296")) ==
        algorithm + "/cluster_shape: expected an integer of 0..4294967295, got 4294967296" + hint);
  CHECK(message(changed("\"tile\": 393", "\"tile\": 1.5")) ==
        algorithm + "/tile: expected an integer of 0..4294967295, got 1.5" + hint);
  CHECK(message(changed("\"split_k\"", "\"split\"")) == algorithm + ": has no \"split_k\"" + hint);
  CHECK(message(changed("33554432", "33554433")) ==
        item + "/workspace_bytes: expected an integer of 0..33554432, got 33554433" + hint);
  CHECK(message(changed("33554432", "-1")) ==
        item + "/workspace_bytes: expected an integer of 0..33554432, got -1" + hint);
  const std::string form = std::string("r.json:/forms/gemv/") + kProduct;
  CHECK(message(changed("\"warps\": 8", "\"warps\": 8.0")) ==
        form + "/warps: expected an integer of 0..1099511627776, got 8.0" + hint);
  CHECK(message(changed("\"stages\": 3,", "\"stages\": -1,")) ==
        form + "/stages: expected an integer of 0..1099511627776, got -1" + hint);
  CHECK(message(changed("0.0030517578125", "-1")) ==
        form + "/seconds: expected a number of at least 0, got -1" + hint);
  const auto forms = [](std::string_view value) {
    return fmt::format(
        R"({{"format": 2, "device": "", "library": "", "choices": {{}}, "forms": {}}})", value);
  };
  CHECK(message(forms("[]")) == "r.json:/forms: expected an object, got []" + hint);
  CHECK(message(forms(R"({"a": 1})")) == "r.json:/forms/a: expected an object, got 1" + hint);
  CHECK(message(forms(R"({"a": {"b": 1}})")) ==
        "r.json:/forms/a/b: expected an object, got 1" + hint);
  const std::string text = sample().to_json();
  const size_t seconds = text.find("\"seconds\": ") + 11;
  const auto with_seconds = [&](std::string_view value) {
    std::string other = text;
    return other.replace(seconds, other.find_first_of(",\n}", seconds) - seconds, value);
  };
  CHECK(message(with_seconds("-1.0")) ==
        item + "/seconds: expected a number of at least 0, got -1.0" + hint);
  CHECK(message(with_seconds("\"fast\"")) ==
        item + "/seconds: expected a number of at least 0, got \\\"fast\\\"" + hint);
  CHECK(message(with_seconds("1e999")) == "r.json: not JSON" + hint);
}

TEST_CASE("no prefix and no changed byte of a record crashes the reader") {
  const std::string text = sample().to_json();
  for (size_t length = 0; length < text.size(); ++length)
    if (const auto read = GemmRecord::parse(text.substr(0, length), "r.json"))
      CHECK(length + 1 == text.size());  // the last newline
  for (size_t i = 0; i < text.size(); ++i)
    for (char c : {'\0', '"', '}', '9', '\x80'}) {
      std::string other = text;
      other[i] = c;
      if (const auto read = GemmRecord::parse(other, "r.json")) CHECK(!read->to_json().empty());
    }
  CHECK(!GemmRecord::parse(std::string(100000, '['), "r.json"));
}

}  // namespace
}  // namespace sinter::gemm_record_test
