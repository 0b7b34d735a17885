// Hostile tokenizers, modules and names as the program meets them.
#include <filesystem>

#include "cli/refused_command.h"

namespace sinter::bad_texts_test {
namespace {

namespace fs = std::filesystem;

TEST_CASE("bad input: tokenizers") {
  const Folder folder;
  const std::string good = read_whole(kGolden + "tokenizers/bytelevel_gpt2/tokenizer.json");
  const auto refused = [&](const std::string& from, const std::string& to, Parts parts) {
    const size_t at = good.find(from);
    REQUIRE(at != good.npos);
    folder.write("tokenizer.json", std::string(good).replace(at, from.size(), to));
    check_refused({"tokenize", folder.path(), "--text", "a"}, parts);
  };
  refused("\"!\": 1", "\"!\": 2147483647", {"tokenizer.json: /model/vocab/!", "2147483647"});
  refused("\"!\": 1", "\"!\": -1", {"/model/vocab/!", "-1"});
  refused("\"!\": 1", "\"!\": 2", {"/model/vocab", "2"});
  refused("\"!\": 1", "\"!\": 0.5", {"/model/vocab/!", "0.5"});
  refused("\"!\": 1", "\"!!\": 1", {"/model/merges/"});
  refused("\"vocab\": {", "\"vocab\": {}, \"unknown\": {", {"/model"});
  folder.write("tokenizer.json", "<html>");
  check_refused({"tokenize", folder.path(), "--text", "a"}, {"tokenizer.json", "web page"});
}

TEST_CASE("bad input: text IR") {
  const Folder folder;
  const auto refused = [&](const std::string& ops, Parts parts) {
    const std::string file = folder.write(
        "m.sir",
        "module @m { symbol N in [1, 8]\nentry @e(%x: f32[N, 4]) -> (%a) {\n" + ops + "\n} }");
    check_refused({"compile", file, "-o", folder.at("plan")}, parts);
    CHECK_FALSE(fs::exists(folder.at("plan")));
  };
  refused("%a = neg %b : f32[N, 4]\n%b = neg %x : f32[N, 4]",
          {"m.sir:3:10", "used before its definition"});
  refused("%a = add %x, %a : f32[N, 4]", {"m.sir:3:14", "%a"});
  refused("%a = neg %x : f32[N, 4]\n%a = neg %x : f32[N, 4]", {"m.sir:4:1", "redefinition of %a"});
  refused("%a = add %x : f32[N, 4]", {"m.sir:3:1", "takes 2 operands, got 1"});
  refused("%a = reduce_sum %x {axes = [2]} : f32[N, 4]", {"m.sir:3:1", "axis 2"});
  refused("%a = broadcast %x : f32[4294967296, 4294967296, N, 4]", {"m.sir:3:1", "2^48"});
  refused("%a = neg " + std::string(100000, '('), {"m.sir:3:"});
  refused("%a = neg %\"" + std::string(1 << 20, 'n') + "\" : f32[N, 4]", {"m.sir:3:"});
}

TEST_CASE("names that are hostile to CUDA text are compiled and shown") {
  const Folder folder;
  const std::vector<std::string> names = {
      "a\\n#include <evil>", "*/ evil", "\\\"evil\\\"", "evil\\\\",
      "__global__",          "a.b",     "a_b",          "int",
      "\xe6\xbc\xa2"};
  std::string ops;
  std::string last = "x";
  for (const std::string& name : names) {
    ops += fmt::format(
        "%\"{0}\" = exp %\"{1}\" : f32[N, 4]\n%\"{0}.sum\" = reduce_sum %\"{0}\" {{axes = [1]}} : "
        "f32[N, 1]\n",
        name, last);
    last = name;
  }
  const std::string file =
      folder.write("names.sir", fmt::format("module @\"m*/\\\"\\n\" {{ symbol N in [1, 8]\nentry "
                                            "@\"e\\n*/\"(%x: f32[N, 4]) -> (%\"{}\") {{\n{}}} }}",
                                            last, ops));
  const ProgramRun compiled = run_program({"compile", file, "-o", folder.at("plan")});
  CAPTURE(compiled.err);
  REQUIRE(compiled.code == 0);
  size_t texts = 0;
  for (const auto& [name, text] : folder_contents(folder.at("plan"))) {
    if (!name.ends_with(".cu")) continue;
    ++texts;
    CHECK(text.find("evil") == std::string::npos);
  }
  CHECK(texts > 0);
  const ProgramRun explained = run_program(
      {"explain", file, "--json", "--dot", folder.at("dot"), "--html", folder.at("html")});
  CAPTURE(explained.err);
  CHECK(explained.code == 0);
}

}  // namespace
}  // namespace sinter::bad_texts_test
