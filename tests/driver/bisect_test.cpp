// bisect: wrong kernels that a hook plants, one at a time, are named within a bound of checks, and
// their reproducers fail alone. SINTER_BISECT_FAULTS=100 plants as many as the whole proof asks
// for.
#include "driver/bisect/bisect.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "driver/small_models.h"
#include "frontends/files/tensor_file.h"
#include "runtime/temporary_directory.h"

namespace sinter::bisect_test {
namespace {

enum class Fault : uint8_t { wrong_index, missing_rounding, stale_read, race };
constexpr Fault kFaults[] = {Fault::wrong_index, Fault::missing_rounding, Fault::stale_read,
                             Fault::race};

Op constant_of(const TensorType& type, double value, std::string name) {
  Op op{OpKind::constant, type, {}, {}, std::move(name)};
  op.attrs.set(AttrName::dims, type.dims)
      .set(AttrName::dtype, type.dtype)
      .set(AttrName::value, value);
  return op;
}

/// A result's elements stand one place beside their own.
bool shift(Graph& graph, size_t output) {
  const ValueId value = graph.outputs[output];
  const TensorType type = graph[value].type;
  if (type.dims.empty() || !type.dims.back().is_constant() || type.dims.back().constant() < 2)
    return false;
  const int64_t last = type.dims.back().constant();
  const auto axis = static_cast<int64_t>(type.dims.size() - 1);
  const auto part = [&](int64_t begin, int64_t size) {
    Op op{OpKind::slice, type, {value}, {}, fmt::format("planted{}", begin)};
    op.type.dims.back() = Dim(size);
    op.attrs.set(AttrName::axis, axis).set(AttrName::begin, begin).set(AttrName::size, Dim(size));
    return graph.add(std::move(op));
  };
  const ValueId rest = part(1, last - 1), first = part(0, 1);
  Op joined{OpKind::concat, type, {rest, first}, {}, "planted"};
  joined.attrs.set(AttrName::axis, axis);
  graph.outputs[output] = graph.add(std::move(joined));
  return true;
}

/// A result has a last bit that its own rounding would not have given it.
bool unround(Graph& graph, size_t output) {
  const ValueId value = graph.outputs[output];
  const TensorType type = graph[value].type;
  if (!is_float(type.dtype)) return false;
  const TensorType wide{DType::f32, type.dims};
  const auto cast = [&](ValueId from, const TensorType& to, const char* name) {
    Op op{OpKind::cast, to, {from}, {}, name};
    op.attrs.set(AttrName::dtype, to.dtype);
    return graph.add(std::move(op));
  };
  const ValueId widened = cast(value, wide, "planted0");
  const ValueId factor = graph.add(constant_of(
      {DType::f32, {}}, 1 + 2 * std::ldexp(1.0, 1 - dtype_info(type.dtype).digits), "planted1"));
  const ValueId product = graph.add(Op{OpKind::mul, wide, {widened, factor}, {}, "planted2"});
  graph.outputs[output] = cast(product, type, "planted");
  return true;
}

/// An op reads another value of the type, which was there earlier.
bool read_stale(Graph& graph) {
  for (uint32_t i = static_cast<uint32_t>(graph.size()); i-- > 0;) {
    Op& op = graph[ValueId{i}];
    if (op_class(op) != OpClass::elementwise) continue;
    for (ValueId& operand : op.operands)
      for (uint32_t other = 0; other < operand.index; ++other)
        if (graph[ValueId{other}].type == graph[operand].type &&
            !llvm::is_contained(op.operands, ValueId{other})) {
          operand = ValueId{other};
          return true;
        }
  }
  return false;
}

/// Where the ops of all pairs share kernels, the kernel of the last pair is wrong.
class Planted {
 public:
  Planted(std::string title, std::vector<std::pair<std::string, std::string>> pairs, Fault fault)
      : title_(std::move(title)), pairs_(std::move(pairs)), fault_(fault) {}

  std::shared_ptr<const Program> operator()(const Compiled& compiled) {
    constexpr int64_t kRaces = 5;
    if (fault_ == Fault::race && ++asked_ % kRaces != 0) return compiled.program;
    for (size_t entry = 0; entry < compiled.module.entries.size(); ++entry)
      if (compiled.module.name == "reproducer" || compiled.title_of(entry) == title_)
        if (const auto changed = changed_entry(compiled, entry)) return changed;
    return compiled.program;
  }
  /// Some plan was changed.
  bool planted() const { return planted_; }

 private:
  std::shared_ptr<const Program> changed_entry(const Compiled& compiled, size_t entry) {
    const Graph& graph = compiled.module.entries[entry].graph;
    const std::vector<uint32_t>& group_of = compiled.fusions[entry].grouping.group_of;
    uint32_t group = UINT32_MAX;
    for (const auto& [x, y] : pairs_) {
      const ValueId a = graph.find(x), b = graph.find(y);
      if (!a.valid() || !b.valid() || group_of[a.index] == UINT32_MAX ||
          group_of[a.index] != group_of[b.index])
        return nullptr;
      group = group_of[a.index];
    }
    std::set<std::string> members;
    for (const ValueId member : compiled.fusions[entry].grouping.groups[group].members)
      members.insert(graph[member].name);
    auto program = std::make_shared<Program>(*compiled.program);
    for (Step& step : program->entries[entry].steps) {
      KernelStep* const run = visit(
          step, [](KernelStep& kernel) { return &kernel; },
          [](GemmStep&) -> KernelStep* { return nullptr; },
          [](CopyStep&) -> KernelStep* { return nullptr; },
          [](CollectiveStep&) -> KernelStep* { return nullptr; });
      if (!run || llvm::none_of(step.values, [&](const auto& v) { return members.contains(v); }))
        continue;
      Kernel kernel = program->kernels[run->kernel];
      if (!change(kernel)) return nullptr;
      run->kernel = static_cast<uint32_t>(program->kernels.size());
      program->kernels.push_back(std::move(kernel));
      planted_ = true;
      return program;
    }
    return nullptr;
  }

  bool change(Kernel& kernel) const {
    for (size_t i = kernel.group.outputs.size(); i-- > 0;) {
      if (llvm::is_contained(kernel.appends, static_cast<uint32_t>(i))) continue;
      const bool done = fault_ == Fault::missing_rounding ? unround(kernel.group, i)
                        : fault_ == Fault::stale_read     ? read_stale(kernel.group)
                                                          : false;
      // A kernel without a value for the other faults reads the wrong element, so that each kernel
      // with these ops is wrong.
      if (done || shift(kernel.group, i)) return true;
    }
    return false;
  }

  std::string title_;
  std::vector<std::pair<std::string, std::string>> pairs_;
  Fault fault_;
  int64_t asked_ = 0;
  bool planted_ = false;
};

struct Search {
  BisectReport report;
  bool planted = false;
};

/// The search's report of a golden model in which the kernels of these fusions are wrong.
Search search(const OpenedModel& model, const std::vector<NumberedFusion>& wrong, Fault fault,
              const std::string& output = {}) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const NumberedFusion& fusion : wrong) pairs.emplace_back(fusion.a, fusion.b);
  const auto planted = std::make_shared<Planted>(wrong.back().title, pairs, fault);
  BisectOptions options;
  options.backend = cpu();
  options.runs.steps = 2;
  options.planted = [planted](const Compiled& compiled) { return (*planted)(compiled); };
  options.output = output;
  BisectReport report = value(bisect(model, options));
  return {std::move(report), planted->planted()};
}

/// All fusions of a model's plan.
std::vector<NumberedFusion> fusions_of(const OpenedModel& model) {
  const Compiled compiled = value(compile(value(freeze(model.module, {})), {}));
  std::vector<NumberedFusion> list;
  for (size_t entry = 0; entry < compiled.fusions.size(); ++entry)
    for (const LedgerEntry& made : compiled.fusions[entry].ledger) {
      if (!made.verdict.accepted()) break;
      const Graph& graph = compiled.module.entries[entry].graph;
      list.push_back({static_cast<int64_t>(list.size()), entry, compiled.title_of(entry),
                      graph[made.a].name, graph[made.b].name, false});
    }
  return list;
}

int64_t log2_up(size_t count) {
  return static_cast<int64_t>(std::ceil(std::log2(static_cast<double>(count))));
}

size_t wanted_faults() {
  constexpr size_t kSample = 8;
  const char* text = std::getenv("SINTER_BISECT_FAULTS");
  return text ? static_cast<size_t>(std::atoi(text)) : kSample;
}

OpenedModel golden(const std::string& name, DType dtype) { return load_golden(name, dtype); }

}  // namespace

TEST_CASE("a right plan: no fusion is guilty, and that is said") {
  BisectOptions options;
  options.backend = cpu();
  options.runs.steps = 2;
  const BisectReport report = value(bisect(golden("llama", DType::bf16), options));
  CHECK(report.verdict == BisectReport::Verdict::right);
  CHECK(report.guilty.empty());
  CHECK(report.runs == options.repeats);
  CHECK(bisect_text(report).find("no fusion is guilty") != std::string::npos);
}

TEST_CASE("wrong kernels are named within ceil(log2(fusions)) + 4 checks; reproducers fail alone") {
  const TemporaryDirectory folder;
  size_t found = 0, skipped = 0, number = 0;
  const size_t wanted = wanted_faults();
  int64_t most_over = 0;
  while (found < wanted && number < 40 * wanted) {
    const char* names[] = {"llama", "gpt2", "gpt_neox_parallel"};
    const OpenedModel model =
        golden(names[number / 4 % 3], number % 2 == 0 ? DType::bf16 : DType::f32);
    const std::vector<NumberedFusion> fusions = fusions_of(model);
    const Fault fault = kFaults[number % 4];
    // Steps through all fusions, in an order that changes entries and layers.
    const NumberedFusion& wrong = fusions[number * 37 % fusions.size()];
    ++number;
    const std::string output = folder.path() + fmt::format("/r{}", number);
    const auto [report, planted] = search(model, {wrong}, fault, output);
    if (report.verdict == BisectReport::Verdict::right) {
      ++skipped;  // the change is none: a library call, a kernel that is not run, equal elements
      continue;
    }
    ++found;
    CAPTURE(bisect_text(report));
    CAPTURE(wrong.title);
    CAPTURE(wrong.a);
    CAPTURE(wrong.b);
    CAPTURE(static_cast<int>(fault));
    REQUIRE(report.guilty.size() == 1);
    const GuiltyFusions& guilty = report.guilty[0];
    REQUIRE(guilty.fusions.size() == 1);
    CHECK(guilty.fusions[0].a == wrong.a);
    CHECK(guilty.fusions[0].b == wrong.b);
    CHECK(guilty.fusions[0].title == wrong.title);
    const int64_t over = report.checks - log2_up(fusions.size());
    most_over = std::max(most_over, over);
    CHECK(over <= 4);
    CHECK(report.flaky == (fault == Fault::race));
    REQUIRE(guilty.difference.has_value());
    CHECK(guilty.difference->bits.a_bits != guilty.difference->bits.b_bits);
    REQUIRE(guilty.reproducer.has_value());
    CHECK(guilty.reproducer->fails);
    CHECK(guilty.reproducer->weight_bytes < guilty.reproducer->model_weight_bytes);
    CHECK(std::filesystem::exists(output + "/model.sir"));
    CHECK(std::filesystem::exists(output + "/reproduce.sh"));
  }
  CHECK(found == wanted);
  MESSAGE(found, " wrong kernels, at most ", most_over, " checks more than the logarithm; ",
          skipped, " changes changed nothing");
}

TEST_CASE("two fusions that fail only together are named within 8 log2(fusions) checks") {
  const OpenedModel model = golden("llama", DType::f32);
  const std::vector<NumberedFusion> fusions = fusions_of(model);
  const size_t wanted = std::max<size_t>(wanted_faults() / 5, 3);
  size_t found = 0;
  int64_t most = 0;
  for (size_t number = 0; found < wanted && number < 40 * wanted; ++number) {
    const NumberedFusion& second = fusions[(number * 29 + 11) % fusions.size()];
    const NumberedFusion& first = fusions[number * 17 % fusions.size()];
    if (first.number >= second.number || first.entry != second.entry) continue;
    const auto [report, planted] = search(model, {first, second}, Fault::wrong_index);
    if (report.verdict == BisectReport::Verdict::right) continue;
    REQUIRE(report.guilty.size() == 1);
    // Where the second one's kernel needs the first, it is enough.
    if (report.guilty[0].fusions.size() == 1) continue;
    ++found;
    most = std::max(most, report.checks);
    CAPTURE(bisect_text(report));
    CAPTURE(first.number);
    CAPTURE(second.number);
    CHECK(report.checks <= 8 * log2_up(fusions.size()));
    std::set<int64_t> numbers;
    for (const NumberedFusion& fusion : report.guilty[0].fusions) numbers.insert(fusion.number);
    CHECK(numbers == std::set{first.number, second.number});
  }
  CHECK(found == wanted);
  MESSAGE(found, " pairs among ", fusions.size(), " fusions, at most ", most, " checks");
}

TEST_CASE("a kernel that is wrong without fusion too: a choice that avoids it is named") {
  const OpenedModel model = golden("llama", DType::f32);
  BisectOptions options;
  options.backend = cpu();
  // Ten texts of 23 tokens exceed the 128 positions together.
  const TemporaryDirectory folder;
  options.reference =
      repeated_reference(SINTER_TESTS_DIR "/golden/llama/reference.safetensors", 5, folder.path());
  CHECK(value(bisect(model, options)).verdict == BisectReport::Verdict::right);
  for (const bool attention_alone : {true, false}) {
    options.planted = [&](const Compiled& compiled) -> std::shared_ptr<const Program> {
      auto program = std::make_shared<Program>(*compiled.program);
      for (Kernel& kernel : program->kernels) {
        const bool attends = llvm::any_of(
            kernel.group.ops(), [](const Op& op) { return op.kind == OpKind::attention; });
        if (attention_alone && !attends) continue;
        for (uint32_t i = 0; i < kernel.group.outputs.size(); ++i)
          if (!llvm::is_contained(kernel.appends, i)) shift(kernel.group, i);
      }
      return program;
    };
    const BisectReport report = value(bisect(model, options));
    CAPTURE(bisect_text(report));
    CHECK(report.guilty.empty());
    CHECK(report.verdict ==
          (attention_alone ? BisectReport::Verdict::choice : BisectReport::Verdict::other));
    CHECK(report.choice == (attention_alone ? "--attention composed" : ""));
  }
}

TEST_CASE("an encoder is compared with a reference too") {
  BisectOptions options;
  options.backend = cpu();
  options.reference = SINTER_TESTS_DIR "/golden/bert_post_ln/reference.safetensors";
  CHECK(value(bisect(golden("bert_post_ln", DType::f32), options)).verdict ==
        BisectReport::Verdict::right);
}

TEST_CASE("two faults that have nothing to do with one another are both named") {
  FusionSearch search;
  search.context = [](int64_t) { return FusionSet(); };
  search.wrong = [](llvm::ArrayRef<FusionSet> sets) -> Result<std::vector<bool>> {
    std::vector<bool> answers;
    for (const FusionSet& set : sets)
      answers.push_back(llvm::is_contained(set, 5) || llvm::is_contained(set, 40));
    return answers;
  };
  FusionSet all(64);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
  for (const size_t at_once : {1, 3}) {
    search.at_once = at_once;
    const auto found = value(find_guilty(all, search));
    REQUIRE(found.size() == 2);
    CHECK(found[0] == FusionSet{5});
    CHECK(found[1] == FusionSet{40});
  }
}

TEST_CASE("a failure that another fusion hides is no obstacle") {
  // 20 with 30 fails, unless 25 is there without 50.
  FusionSearch search;
  search.context = [](int64_t) { return FusionSet(); };
  const auto fails = [](const FusionSet& set) {
    const auto has = [&](int64_t n) { return llvm::is_contained(set, n); };
    return has(20) && has(30) && (!has(25) || has(50));
  };
  search.wrong = [&](llvm::ArrayRef<FusionSet> sets) -> Result<std::vector<bool>> {
    std::vector<bool> answers;
    for (const FusionSet& set : sets) answers.push_back(fails(set));
    return answers;
  };
  FusionSet all(64);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
  for (FusionSet found : value(find_guilty(all, search))) {
    std::sort(found.begin(), found.end());
    CHECK(fails(found));
    CHECK(found.size() <= 4);
  }
}

TEST_CASE("an interrupted search goes on from its file; another search does not take it") {
  const TemporaryDirectory folder;
  const OpenedModel model = golden("llama", DType::f32);
  const std::vector<NumberedFusion> fusions = fusions_of(model);
  const auto options_with = [&](int64_t stop_after) {
    BisectOptions options;
    options.backend = cpu();
    options.runs.steps = 2;
    options.state = folder.path() + "/state";
    const auto planted = std::make_shared<Planted>(
        fusions[3].title, std::vector{std::pair(fusions[3].a, fusions[3].b)}, Fault::wrong_index);
    const auto plans = std::make_shared<int64_t>(0);
    options.planted = [planted, plans, stop_after](const Compiled& compiled) {
      if (++*plans == stop_after) throw std::runtime_error("interrupted");
      return (*planted)(compiled);
    };
    return options;
  };
  const BisectReport whole = value(bisect(model, options_with(-1)));
  REQUIRE(whole.guilty.size() == 1);
  CHECK_FALSE(std::filesystem::exists(folder.path() + "/state"));
  CHECK_THROWS(value(bisect(model, options_with(7))));
  REQUIRE(std::filesystem::exists(folder.path() + "/state"));
  BisectOptions other = options_with(-1);
  other.runs.seed = 9;
  CHECK(bisect(model, other).error().code == ExitCode::usage);
  const BisectReport rest = value(bisect(model, options_with(-1)));
  CHECK(rest.known > 0);
  CHECK(rest.checks + rest.known == whole.checks);
  REQUIRE(rest.guilty.size() == 1);
  CHECK(rest.guilty[0].fusions[0].number == whole.guilty[0].fusions[0].number);
}

}  // namespace sinter::bisect_test
