// A host program with a decimal comma, as a desktop program has after setlocale(LC_ALL, ""): files,
// texts and results are those of the C locale.
#include <doctest/doctest.h>

#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <locale>

#include "sinter.h"

using namespace sinter;

namespace {

constexpr const char* kModule = R"(
module @block {
  symbol N in [1, 64]
  weight %w : f32[8] = constant {value = 1.5}
  entry @main(%x: f32[N, 8]) -> (%n) {
    %h = constant {value = 0.3125} : f32[]
    %s = mul %x, %h : f32[N, 8]
    %n = rms_norm %s, %w {eps = 1.5e-5} : f32[N, 8]
  }
})";

template <typename T>
T take(Result<T> result) {
  if (!result) FAIL(result.error().message);
  return std::move(*result);
}
void ok(const Status& done) {
  if (!done) FAIL(done.error().message);
}

namespace fs = std::filesystem;

/// A locale with a decimal comma while it lives, of C and of C++, made here where the system has
/// none.
class DecimalComma {
 public:
  DecimalComma() : folder_(fs::temp_directory_path() / "sinter-api-locales") {
    fs::create_directories(folder_);
    const std::string made = (folder_ / "de_DE.UTF-8").string();
    // Warnings of localedef give an exit code of their own; setlocale() decides.
    [[maybe_unused]] const int code =
        std::system(("localedef -i de_DE -f UTF-8 " + made + " 2>/dev/null >/dev/null").c_str());
    setenv("LOCPATH", folder_.c_str(), 1);
    found_ = std::setlocale(LC_ALL, "de_DE.UTF-8") && *std::localeconv()->decimal_point == ',';
    if (found_) before_ = std::locale::global(std::locale("de_DE.UTF-8"));
  }
  ~DecimalComma() {
    if (found_) std::locale::global(before_);
    std::setlocale(LC_ALL, "C");
    unsetenv("LOCPATH");
    fs::remove_all(folder_);
  }
  DecimalComma(const DecimalComma&) = delete;
  DecimalComma& operator=(const DecimalComma&) = delete;

  bool found() const { return found_; }

 private:
  fs::path folder_;
  std::locale before_;
  bool found_ = false;
};

/// The texts of a plan, without what is measured.
std::vector<std::string> texts(const Plan& plan) {
  std::vector<std::string> all;
  for (const char* what : {"plan.json", "module", "ledger.txt", "ledger.json"})
    all.push_back(take(plan.text(what)));
  return all;
}

Model built() {
  ModuleBuilder module("norm");
  const Symbol rows = module.symbol("N", 1, 64);
  module.weight("w", DType::f32, {8});
  Graph graph = module.entry("main");
  const Value x = graph.input("x", DType::f32, {rows, 8});
  const Value y = graph.rms_norm(x, graph.use("w"), 1.5e-5, "y");
  graph.output(graph.mul(y, graph.constant(0.3125, DType::f32, {}), "z"));
  return take(module.build());
}

struct Outcome {
  std::vector<std::string> texts;
  std::vector<float> y;
  std::vector<std::int32_t> tokens;
};

/// Compiles, saves, loads, explains and runs, with numbers in every kind of file and text.
Outcome outcome() {
  Outcome all;
  const std::string folder = (fs::temp_directory_path() / "sinter-api-locale-plan").string();
  fs::remove_all(folder);
  const Plan plan = take(Plan::compile(take(Model::parse(kModule))));
  all.texts = texts(plan);
  ok(plan.save(folder));
  const Plan opened = take(Plan::open(folder));
  CHECK(take(opened.text("plan.json")) == all.texts[0]);
  const Device device = take(Device::open("cpu"));
  const Executable executable = take(Executable::load(opened, device));
  Session session = take(Session::create(executable));
  Call call = take(Call::create(session, "main"));
  const std::vector<float> x(24, 0.75f);
  all.y.resize(24);
  ok(call.input("x", {DType::f32, {3, 8}, x.data()}));
  ok(call.output("n", {DType::f32, {3, 8}, all.y.data()}));
  ok(call.run());
  // Over a folder that is there: its manifest is read.
  ok(plan.save(folder));
  fs::remove_all(folder);

  all.texts.push_back(take(built().text()));
  // config.json, tokenizer.json and generation options with fractions.
  LanguageModel model = take(LanguageModel::open(SINTER_SAMPLES_DIR "/tiny-llama", device));
  GenerateOptions options;
  options.count = 6;
  options.temperature = 0.75;
  options.top_p = 0.875;
  options.seed = 3;
  all.tokens = take(model.generate({take(model.encode("Once upon"))}, options))[0];
  return all;
}

}  // namespace

TEST_CASE("a host program with a decimal comma gets the same files, texts and results") {
  const Outcome expected = outcome();
  const DecimalComma comma;
  if (!comma.found()) {
    MESSAGE("skipped: this system makes no locale with a decimal comma");
    return;
  }
  char text[8];
  std::snprintf(text, sizeof text, "%.1f", 0.5);
  REQUIRE(std::string(text) == "0,5");
  const Outcome actual = outcome();
  CHECK(actual.texts == expected.texts);
  CHECK(actual.y == expected.y);
  CHECK(actual.tokens == expected.tokens);
  std::snprintf(text, sizeof text, "%.1f", 0.5);
  CHECK(std::string(text) == "0,5");  // the program keeps its locale
}
