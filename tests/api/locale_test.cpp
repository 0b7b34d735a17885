// A host program with another locale, as a desktop program has after setlocale(LC_ALL, ""): files,
// texts and results of every kind of model are as in the C locale, byte for byte.
//
// SINTER_TEST_LOCALES=all tries every locale of kLocales, which takes a minute; =tr_TR.UTF-8 tries
// that locale.
#include <doctest/doctest.h>

#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <locale>
#include <map>
#include <sstream>

#include "../frontends/llama2c_bytes.h"
#include "sinter.h"

using namespace sinter;
namespace fs = std::filesystem;

namespace {

/// Decimal commas, a decimal sign of two bytes (fa_IR, ps_AF), digits in other groups (hi_IN), the
/// letter i of Turkish and Lithuanian, sets of characters with one and with several bytes.
constexpr const char* kLocales[] = {
    "de_DE.ISO-8859-1", "tr_TR.ISO-8859-9", "de_DE.UTF-8",       "tr_TR.UTF-8", "fa_IR.UTF-8",
    "ps_AF.UTF-8",      "hi_IN.UTF-8",      "ar_EG.UTF-8",       "fr_FR.UTF-8", "de_CH.UTF-8",
    "ru_RU.KOI8-R",     "uk_UA.UTF-8",      "lt_LT.ISO-8859-13", "az_AZ.UTF-8", "ja_JP.EUC-JP",
    "zh_CN.GB18030",    "zh_TW.BIG5",       "ko_KR.EUC-KR",      "th_TH.UTF-8", "el_GR.ISO-8859-7",
    "pt_BR.UTF-8",      "sv_SE.UTF-8",      "cs_CZ.ISO-8859-2",  "he_IL.UTF-8",
};
constexpr size_t kTriedAlways = 2;

constexpr const char* kModule = R"(
module @block {
  symbol N in [1, 64]
  weight %w : f32[8] = file {tensor = "w"}
  entry @main(%x: f32[N, 8]) -> (%n) {
    %h = constant {value = 0.3125} : f32[]
    %s = mul %x, %h : f32[N, 8]
    %n = rms_norm %s, %w {eps = 1.5e-5} : f32[N, 8]
  }
})";

constexpr const char* kSpec = R"({
  "sinter_spec": 1, "name": "small", "dtype": "f32",
  "vocabulary": 100, "hidden": 32, "layers": 2, "heads": 4, "kv_heads": 2, "ffn": 48,
  "max_positions": 64, "norm": "rms_norm", "norm_eps": 1.5e-5,
  "rope": {"theta": 12345.5}, "activation": "silu", "gated": true, "embed_scale": 1.25
})";

template <typename T>
T take(Result<T> result) {
  if (!result) FAIL(result.error().message);
  return std::move(*result);
}
void ok(const Status& done) {
  if (!done) FAIL(done.error().message);
}

/// "0.5" as the program's printf writes it.
std::string one_half() {
  char text[16];
  std::snprintf(text, sizeof text, "%.1f", 0.5);
  return text;
}

/// The program has the locale `name` while this lives, in C and, where it is there, in C++. It is
/// made here.
class HostLocale {
 public:
  HostLocale(const std::string& name, const fs::path& folder) {
    const size_t dot = name.find('.');
    const std::string command = "localedef -i " + name.substr(0, dot) + " -f " +
                                name.substr(dot + 1) + " '" + (folder / name).string() +
                                "' 2>/dev/null >/dev/null";
    // Warnings of localedef give an exit code of their own; setlocale() decides.
    [[maybe_unused]] const int code = std::system(command.c_str());
    setenv("LOCPATH", folder.c_str(), 1);
    found_ = std::setlocale(LC_ALL, name.c_str()) != nullptr;
    if (!found_) return;
    try {
      before_ = std::locale::global(std::locale(name));
    } catch (const std::runtime_error&) {
      std::setlocale(LC_ALL, name.c_str());
    }
  }
  ~HostLocale() {
    if (found_) std::locale::global(before_);
    std::setlocale(LC_ALL, "C");
    unsetenv("LOCPATH");
  }
  HostLocale(const HostLocale&) = delete;
  HostLocale& operator=(const HostLocale&) = delete;

  bool found() const { return found_; }

 private:
  std::locale before_ = std::locale::classic();
  bool found_ = false;
};

class TestFolder {
 public:
  TestFolder() : path_(fs::temp_directory_path() / "sinter-api-locales") {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  ~TestFolder() { fs::remove_all(path_); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  const fs::path& path() const { return path_; }
  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path_ / name, std::ios::binary) << bytes;
  }

 private:
  fs::path path_;
};

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A file with the tensor "w" of kModule.
std::string safetensors_bytes() {
  const std::string header = R"({"w":{"dtype":"F32","shape":[8],"data_offsets":[0,32]}})";
  const std::uint64_t size = header.size();
  const float w[8] = {0.5f, 1.5f, 2.5f, -0.25f, 1e-3f, 3, 4, 5};
  std::string bytes(reinterpret_cast<const char*>(&size), sizeof size);
  bytes += header;
  return bytes.append(reinterpret_cast<const char*>(w), sizeof w);
}

void write_models(const TestFolder& folder) {
  folder.write("block.sir", kModule);
  folder.write("w.safetensors", safetensors_bytes());
  folder.write("small.json", kSpec);
  // dim 8, ffn 16, 1 layer, 2 heads, 1 kv head, 32 tokens, 16 positions: the embedding, norms,
  // matrices, and two tables of rotations.
  const size_t floats = 32 * 8 + 3 * 8 + 2 * 8 * 8 + 2 * 8 * 4 + 3 * 8 * 16 + 2 * 16 * 2;
  folder.write("small.bin", testing::llama2c_bytes({8, 16, 1, 2, 1, 32, 16}, 0, 1, floats));
}

/// The texts, files and results that a program gets, each under its name.
using Outcome = std::map<std::string, std::string>;

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

void add_decisions(Outcome& all, const std::string& kind, const Plan& plan) {
  for (size_t entry = 0; entry < plan.entries().size(); ++entry) {
    std::string& text = all[kind + " decisions"];
    for (const Decision& one : take(plan.decisions(entry)))
      text += one.a + " " + one.b + " " + one.reason + " " + one.text + " " + one.detail + "\n";
    const double seconds = take(plan.costs(entry)).predicted_seconds;
    all[kind + " costs"].append(reinterpret_cast<const char*>(&seconds), sizeof seconds);
  }
}

/// Compiles a model, asks for every text, saves the plan and opens it. Returns the plan's folder.
std::string add_plan(Outcome& all, const std::string& kind, const Model& model,
                     const TestFolder& folder) {
  all[kind + " text"] = take(model.text());
  const Plan plan = take(Plan::compile(model));
  for (const char* what : {"plan.json", "module", "ledger.txt", "ledger.json", "ledger.html"})
    all[kind + " " + what] = take(plan.text(what));
  add_decisions(all, kind, plan);
  const std::string saved = folder / (kind + ".plan");
  ok(plan.save(saved));
  for (const auto& file : fs::recursive_directory_iterator(saved))
    if (file.is_regular_file()) {
      const fs::path name = fs::relative(file.path(), saved);
      all[kind + " file " + name.string()] = read_file(file.path());
    }
  const Plan opened = take(Plan::open(saved));
  CHECK(take(opened.text("plan.json")) == all[kind + " plan.json"]);
  ok(plan.save(saved));  // over a folder that is there: its manifest is read
  return saved;
}

void add_run(Outcome& all, const std::string& kind, const Plan& plan, const Device& device) {
  const Executable executable = take(Executable::load(plan, device));
  Session session = take(Session::create(executable));
  Call call = take(Call::create(session, "main"));
  const std::vector<float> x(24, 0.75f);
  std::vector<float> y(24);
  ok(call.input("x", {DType::f32, {3, 8}, x.data()}));
  ok(call.output("n", {DType::f32, {3, 8}, y.data()}));
  ok(call.run());
  all[kind + " result"] = bytes_of(y);
}

void add_tokens(Outcome& all, const std::string& kind, LanguageModel& model,
                const std::vector<std::int32_t>& prompt) {
  GenerateOptions options;
  options.count = 6;
  options.temperature = 0.75;
  options.top_p = 0.875;
  options.seed = 3;
  options.activation_memory = "1500MB";
  all[kind + " tokens"] = bytes_of(take(model.generate({prompt}, options))[0]);
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

/// Every kind of model: from its files to texts, to a plan's folder and back, to results.
Outcome outcome(const TestFolder& folder) {
  Outcome all;
  const Device device = take(Device::open("cpu"));
  OpenOptions random;
  random.random_weights = 7;

  OpenOptions weights;
  weights.weights = folder / "w.safetensors";
  const std::string block = "module",
                    saved = add_plan(all, block, take(Model::open(folder / "block.sir", weights)),
                                     folder);
  add_run(all, block, take(Plan::open(saved)), device);
  all["parsed text"] = take(take(Model::parse(kModule)).text());
  all["built text"] = take(built().text());
  const Report report = take(verify(take(Model::open(folder / "block.sir", weights)), device));
  CHECK(report.passed);
  all["verified"] = bytes_of(std::vector<double>{report.fused_error, report.unfused_error});

  add_plan(all, "spec", take(Model::open(folder / "small.json", random)), folder);
  LanguageModel spec = take(LanguageModel::open(folder / "small.json", device, random));
  add_tokens(all, "spec", spec, {1, 2, 3});

  add_plan(all, "llama2.c", take(Model::open(folder / "small.bin")), folder);
  LanguageModel checkpoint = take(LanguageModel::open(folder / "small.bin", device));
  add_tokens(all, "llama2.c", checkpoint, {1, 2, 3});

  const std::string tiny = SINTER_SAMPLES_DIR "/tiny-llama";
  const std::string plan = add_plan(all, "folder", take(Model::open(tiny)), folder);
  for (const std::string& path : {tiny, plan}) {
    LanguageModel model = take(LanguageModel::open(path, device));
    const auto tokens = take(model.encode("Once upon a time, I\u0131\u0130i TITLE \u00e9 1.5 1,5"));
    all["tokens of a text"] += bytes_of(tokens) + take(model.decode(tokens));
    add_tokens(all, path == tiny ? "folder" : "plan", model, tokens);
  }
  return all;
}

std::vector<std::string> wanted_locales() {
  const char* asked = std::getenv("SINTER_TEST_LOCALES");
  const bool all = asked && std::string(asked) == "all";
  if (asked && !all) return {asked};
  return {kLocales, all ? std::end(kLocales) : kLocales + kTriedAlways};
}

void compare(const std::string& locale, const Outcome& expected, const TestFolder& folder) {
  CAPTURE(locale);
  const std::string half = one_half();
  const Outcome actual = outcome(folder);
  CHECK(one_half() == half);  // the program keeps its locale
  CHECK(actual.size() == expected.size());
  for (const auto& [what, bytes] : expected) {
    CAPTURE(what);
    CHECK(actual.contains(what));
    CHECK((actual.contains(what) && actual.at(what) == bytes));
  }
}

}  // namespace

TEST_CASE("a host program of any locale gets the same files, texts and results") {
  const TestFolder folder;
  write_models(folder);
  const Outcome expected = outcome(folder);
  size_t tried = 0, commas = 0;
  const std::vector<std::string> locales = wanted_locales();
  for (const std::string& name : locales) {
    const HostLocale locale(name, folder.path());
    if (!locale.found()) {
      MESSAGE("skipped: this system does not make " << name);
      continue;
    }
    ++tried;
    commas += one_half() != "0.5";
    compare(name, expected, folder);
  }
  MESSAGE(tried << " of " << locales.size() << " locales, " << commas << " without decimal point, "
                << expected.size() << " texts, files and results of each");
}
