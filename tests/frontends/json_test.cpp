#include "frontends/files/json.h"

#include <fmt/format.h>

#include "frontends/small_files.h"
#include "support/result.h"

namespace sinter::json_test {
namespace {

Result<JsonDocument> parse(std::string_view text) { return parse_json(text, "c.json"); }

JsonDocument parsed(std::string_view text) { return value(parse(text)); }

/// Writes down the events it gets.
class Recorder final : public JsonVisitor {
 public:
  Status null() override { return note("null"); }
  Status boolean(bool b) override { return note(b ? "true" : "false"); }
  Status integer(int64_t n) override { return note(fmt::format("i{}", n)); }
  Status real(double n) override { return note(fmt::format("r{}", n)); }
  Status oversized(JsonOversized n) override { return note("o" + n.spelling); }
  Status string(std::string s) override {
    if (s == "stop") return fail("stopped");
    return note("s" + s);
  }
  Status begin_object() override { return note("{"); }
  Status key(std::string k) override { return note("k" + k); }
  Status end_object() override { return note("}"); }
  Status begin_array() override { return note("["); }
  Status end_array() override { return note("]"); }

  std::string events;

 private:
  Status note(const std::string& event) {
    events += event + " ";
    return {};
  }
};

}  // namespace

TEST_CASE("json: values of every kind, members in file order") {
  JsonDocument d = parsed(R"( {"z": [1, -2.5, true, null], "a": {"k": "v\u00e9"}, "e": 1e3} )");
  const JsonValue::Object& members = *d.root.object();
  REQUIRE(members.size() == 3);
  CHECK(members[0].key == "z");
  CHECK(members[1].key == "a");
  JsonView v = d.view();
  CHECK(*v["z"][0].integer() == 1);
  CHECK(*v["z"][1].number() == -2.5);
  CHECK(*v["z"][2].boolean());
  CHECK_FALSE(v["z"][3].present());
  CHECK(*v["a"]["k"].string() == "v\u00e9");
  CHECK(*v["e"].number() == 1000);
  CHECK(*parsed("9223372036854775807").view().integer() == INT64_MAX);
  CHECK(*parsed("-9223372036854775808").view().integer() == INT64_MIN);
  CHECK(*parsed("\xEF\xBB\xBF[]").view().array() != nullptr);  // a byte order mark
}

TEST_CASE("json: getters name file, pointer, expected and actual value") {
  JsonDocument d = parsed(R"({"heads": 4096.5, "neg": -1, "text": "12", "list": [1, "x"],
                              "null": null, "a/b~c": {}})");
  JsonView v = d.view();
  check_error(v["heads"].integer(1), {"c.json: /heads: expected an integer >= 1, got 4096.5"});
  check_error(v["neg"].integer(0, 7), {"c.json: /neg: expected an integer from 0 to 7, got -1"});
  check_error(v["text"].integer(), {"c.json: /text: expected an integer, got \"12\""});
  check_error(v["text"].number(), {"/text", "expected a number, got \"12\""});
  check_error(v["neg"].number(0, 1), {"/neg", "expected a number from 0 to 1, got -1"});
  check_error(v["list"][1].number(), {"c.json: /list/1", "got \"x\""});
  check_error(v["list"][2].integer(), {"/list/2", "the key is missing"});
  check_error(v["list"].string(), {"/list", "expected a string, got an array of 2"});
  check_error(v["null"].boolean(), {"/null", "expected true or false, got null"});
  check_error(v["a/b~c"].array(), {"/a~1b~0c", "expected an array, got an object of 0"});
  check_error(v["none"]["deeper"].object(), {"/none/deeper", "the key is missing"});
  check_error(v["heads"]["deeper"].string(), {"/heads/deeper", "the key is missing"});
}

TEST_CASE("json: fallbacks stand for missing and null, not for wrong values") {
  JsonDocument d = parsed(R"({"n": null, "x": "s"})");
  JsonView v = d.view();
  CHECK(*v["n"].integer_or(7) == 7);
  CHECK(*v["none"].number_or(0.5) == 0.5);
  CHECK(*v["none"].boolean_or(true));
  CHECK(*v["none"].string_or("d") == "d");
  CHECK(*v["x"].string_or("d") == "s");
  check_error(v["x"].integer_or(7), {"/x", "expected an integer"});
  check_error(v["x"].number_or(7), {"/x", "expected a number"});
  check_error(v["x"].boolean_or(true), {"/x", "expected true or false"});
}

TEST_CASE("json: numbers that do not fit are errors where they are used, and nowhere else") {
  const JsonDocument d = parsed(R"({"limit": 1000000000000000019884624838656,
      "a": [0, 9223372036854775808], "least": -9223372036854775809, "theta": 1e400,
      "minus": -1e400, "far": 1e5000, "name": "x"})");
  const JsonView v = d.view();
  CHECK(*v["name"].string() == "x");
  CHECK(v["limit"].present());
  check_error(v["limit"].integer(),
              {"c.json: /limit: expected an integer, got "
               "1000000000000000019884624838656, which does not fit 64 bits"});
  check_error(v["a"][1].integer(1), {"c.json: /a/1: expected an integer >= 1, got "
                                     "9223372036854775808, which does not fit 64 bits"});
  check_error(v["least"].integer(), {"/least", "-9223372036854775809"});
  check_error(v["limit"].string(), {"/limit", "expected a string, got 10000"});
  check_error(v["theta"].number(), {"c.json: /theta: expected a number, got 1e400, which does not "
                                    "fit a double"});
  check_error(v["minus"].number(), {"/minus", "-1e400"});
  check_error(v["far"].number(), {"/far", "1e5000"});
  CHECK(*v["limit"].number() == 1e30);
  check_error(v["limit"].number(0, 1), {"/limit", "expected a number from 0 to 1"});
  const JsonDocument digits = parsed("[" + std::string(100000, '9') + "]");
  check_error(digits.view()[0].number(), {"c.json: /0", "9999...", "a double"});
}

TEST_CASE("json: NaN and infinity are no numbers") {
  check_error(parse(R"({"eps": NaN})"), {"c.json:1:9", "/eps", "not JSON"});
  check_error(parse(R"({"eps": Infinity})"), {"c.json:1:9", "/eps"});
}

TEST_CASE("json: duplicate keys are errors at any depth") {
  check_error(parse(R"({"a": 1, "b": 2, "a": 3})"), {"c.json: the key \"a\"", "twice"});
  check_error(parse(R"({"o": [{"x": 1, "\u0078": 1}]})"), {"c.json: /o/0: the key \"x\"", "twice"});
}

TEST_CASE("json: 64 levels are read, 65 and 100,000 are refused") {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  CHECK(parse(nested(json_max_depth)));
  check_error(parse(nested(json_max_depth + 1)), {"c.json", "64 levels"});
  check_error(parse(nested(100000)), {"c.json", "64 levels"});
  check_error(parse(std::string(100000, '[')), {"64 levels"});
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += "{\"k\":";
  check_error(parse(objects), {"64 levels"});
}

TEST_CASE("json: broken text is placed by line and column") {
  check_error(parse(""), {"c.json:1:1", "not JSON"});
  check_error(parse("{\n  \"a\": 1,\n  \"b\" 2\n}"), {"c.json:3:7"});
  check_error(parse("{\"a\": \"\xff\"}"), {"c.json:1:8", "UTF-8"});
  check_error(parse("[\"\xed\xa0\x80\"]"), {"UTF-8"});  // a surrogate
  check_error(parse("{} x"), {"c.json:1:4"});
  check_error(parse("[1,]"), {"c.json:1:4"});
  check_error(parse("// no\n{}"), {"c.json:1:1"});
  check_error(parse("\"" + std::string(1 << 20, 'x')), {"c.json:1:"});
  check_error(parse(std::string("{\"a\": 1}\0", 9)), {"c.json:1:9", "zero byte"});
  check_error(parse(std::string("{\"a\": 1}\n\0{\"a\": 2}", 19)), {"c.json:2:1", "zero byte"});
}

TEST_CASE("json: every truncation of a document is refused") {
  const std::string text = R"({"a": [1.5, {"b": null}], "c\n": "\u20ac", "d": [true, false]})";
  for (size_t length = 0; length < text.size(); ++length) {
    CAPTURE(length);
    check_error(parse(std::string_view(text).substr(0, length)), {"c.json"});
  }
  CHECK(parse(text));
}

TEST_CASE("json: a visitor gets events in order, its failure gets the place") {
  Recorder recorder;
  REQUIRE(
      visit_json(R"({"a": [1, 2.5, "x", null, true], "b": {}, "c": 1e999})", "v.json", recorder));
  CHECK(recorder.events == "{ ka [ i1 r2.5 sx null true ] kb { } kc o1e999 } ");
  check_error(visit_json(R"({"a": [1, {"b": "stop"}]})", "v.json", recorder),
              {"v.json: /a/1/b: stopped"});
}

TEST_CASE("json: files are read with a limit; impostors are named") {
  ScratchFolder folder;
  auto document = read_json(folder.write("config.json", R"({"a": 1})"));
  REQUIRE(document);
  CHECK(*document->view()["a"].integer() == 1);
  check_error(read_json(folder.path("config.json"), 7), {"config.json", "8 bytes", "at most 7"});
  check_error(read_json(folder.write("empty.json", "")), {"empty.json", "empty"});
  check_error(read_json(folder.write("page.json", "<!doctype html>")), {"page.json", "web page"});
  check_error(read_json(folder.path()), {"a folder"});
  check_error(read_json(folder.write("bad.json", "{\"a\": nul}")), {"bad.json:1:", "/a"});
}

TEST_CASE("json: quoting gives back what was quoted") {
  const std::string text("a\"b\\c\n\x01\u20ac\0z", 12);
  CHECK(*parsed(json_quoted(text)).view().string() == text);
  CHECK(is_utf8("\u20ac"));
  CHECK_FALSE(is_utf8("\xe2\x82"));
}

}  // namespace sinter::json_test
