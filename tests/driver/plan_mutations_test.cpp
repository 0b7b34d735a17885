// Plans that somebody has changed, hashes included: each is refused, or runs to its end on the CPU
// and touches no memory but the call's own, and no byte that nobody wrote has any effect.
//
// SINTER_MUTATIONS=N tries N plans (400) from number SINTER_FIRST=F on (0), SINTER_SEED=S others
// (1), in SINTER_PROCESSES=P processes (1). Beyond 400 plans, or from another first one on, those
// of all cases of tests/passes/cases are changed.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>

#include "differential/child_pool.h"
#include "driver/compile/compile.h"
#include "driver/generate/decoder.h"
#include "frontends/check_tensors.h"
#include "frontends/files/bounded_file.h"
#include "frontends/files/random_tensors.h"
#include "ir/text.h"
#include "ir/variants.h"
#include "plan/plan_file.h"
#include "plan/program_builder.h"
#include "runtime/host/executable.h"
#include "runtime/random_inputs.h"
#include "support/guarded_memory.h"
#include "support/plan_mutator.h"
#include "support/run_plan.h"

namespace sinter::test::plan_mutations_test {
namespace {

namespace fs = std::filesystem;
using Json = PlanMutator::Json;

constexpr uint64_t kSampled = 400;
constexpr double kMaxElements = 1 << 20;
constexpr int kSecondsOfItem = 120;

/// Between them: weights, states and appends, products with epilogues, variants, placed parts,
/// values in place, row checks, scattered rows, copies, attention of every family, tensor maps.
constexpr const char* kCases[] = {"entry_variants_by_tokens",  "placed_parts",
                                  "order_keeps_overwriting",   "check_rows_of_computed_numbers",
                                  "product_epilogues_fast",    "scattered_rows_and_their_readers",
                                  "choose_tiled_attention",    "append_and_readers_of_the_state",
                                  "optimizer_of_many_tensors", "rotary_of_two_widths_with_appends"};

uint64_t number(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

Result<Json> compiled_case(const std::string& path) {
  SINTER_LET(text, read_small_file(path, 1 << 20));
  SINTER_LET(module, parse_module(text, path));
  CompileOptions options;
  if (text.find("// numerics: fast") != text.npos) options.fusion.numerics = Numerics::fast;
  SINTER_LET(frozen, freeze(std::move(module), {}, {}, pass_options(options)));
  SINTER_LET(compiled, compile(std::move(frozen), options));
  return Json::parse(write_plan(*compiled.program));
}

/// a begins a value with x, b places y in it; z = -b.
Program placing_program() {
  ProgramBuilder p;
  const TensorType half{DType::f32, {8, 4}}, whole{DType::f32, {8, 8}};
  const uint32_t x = p.input("x", half), y = p.input("y", half);
  const uint32_t a = p.arena("a", whole, 0), b = p.arena("b", whole, 0);
  const uint32_t z = p.arena("z", whole, 1);
  const auto placing = [](int64_t begin) {
    return [begin](Builder& g, std::vector<ValueId> in) {
      return std::vector{g.op(OpKind::place, in,
                              Attributes()
                                  .set(AttrName::axis, int64_t{1})
                                  .set(AttrName::begin, begin)
                                  .set(AttrName::size, Dim(8)))};
    };
  };
  p.kernel("begin", {x}, {a}, placing(4));
  p.kernel("place", {y, a}, {b}, placing(0));
  p.kernel("neg", {b}, {z},
           [](Builder& g, std::vector<ValueId> in) { return std::vector{g.neg(in[0])}; });
  p.output(z);
  p.program.kernels[1].in_place = {{0, 1}};
  return p.finish();
}

/// Plans written by hand and those of kCases; then, if wanted, those of the other cases.
struct Plans {
  std::vector<Json> found;
  size_t chosen = 0;  // the first ones, of which each second plan is made

  explicit Plans(bool of_all_cases) {
    for (const Program& program : {sample_program(), gathering_program(), copying_program(),
                                   overlapping_program(), placing_program()})
      found.push_back(Json::parse(write_plan(program)));
    const std::string folder = SINTER_TESTS_DIR "/passes/cases/";
    for (const char* name : kCases) {
      auto plan = compiled_case(folder + name + ".sir");
      REQUIRE_MESSAGE(plan.has_value(), (plan ? "" : plan.error().message()));
      found.push_back(std::move(*plan));
    }
    chosen = found.size();
    if (!of_all_cases) return;
    std::vector<std::string> paths;
    for (const auto& file : fs::directory_iterator(folder)) paths.push_back(file.path().string());
    llvm::sort(paths);
    for (const std::string& path : paths)  // some have a model's folder, some show an error
      if (auto plan = compiled_case(path)) found.push_back(std::move(*plan));
  }

  const Json& of(uint64_t item) const {
    return found[item / 2 % (item % 2 == 0 ? chosen : found.size())];
  }
};

/// Numbers that name rows of most tables, and truth values.
Result<HostTensor> input_of(const TensorType& type, llvm::ArrayRef<int64_t> sizes, uint64_t seed) {
  const RandomRange range{1, 0, type.dtype == DType::i1 ? 1 : 3};
  return random_tensor(type.dtype, concrete_dims(type, sizes), seed, range);
}

void append(std::string& outcome, const HostTensor& tensor) {
  outcome.append(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
}

struct GuardedRun {
  std::string results;  // the bytes of all results, and the errors of calls that have none
  bool has_errors = false;
};

/// Runs every entry once, every tensor between guard pages. `poison`: of what no step has written.
Result<GuardedRun> run_guarded(const std::shared_ptr<const Program>& program,
                               llvm::ArrayRef<int64_t> sizes, bool poison) {
  const Module tables{program->name, program->symbols, program->weights, {}, {}};
  const RandomTensorSource source(1, file_tensors(tables));
  const GuardedAllocations guarded(
      std::byte{static_cast<unsigned char>(poison ? kPoison : 0x3C)},
      poison ? GuardedSide::begins_at_guard : GuardedSide::ends_at_guard);
  SINTER_LET(model, HostExecutable::load(program, &source));
  std::vector<ReadOnly> weights;
  for (size_t i = 0; i < program->weights.size(); ++i)
    weights.emplace_back(model.weight(i).bytes.data());
  SINTER_LET(session, HostSession::create(model, sizes));
  CallOptions options;
  options.poison_freed = poison;
  GuardedRun run;
  for (const EntryPlan& entry : program->entries) {
    const std::vector<int64_t> values = sizes_in(entry.range, program->symbols, sizes);
    std::vector<HostTensor> inputs;
    std::vector<ReadOnly> given;
    for (uint32_t id : entry.inputs) {
      SINTER_LET(input, input_of(entry.buffers[id].type, values, id));
      given.emplace_back(inputs.emplace_back(std::move(input)).bytes.data());
    }
    const auto result = session.run(entry.name, values, addresses_of(inputs), options);
    if (result) {
      for (const HostTensor& output : result->outputs) append(run.results, output);
    } else {
      if (result.error().code == ExitCode::internal_error)
        return tl::make_unexpected(result.error());
      run.has_errors = true;
      run.results += result.error().message();
    }
    for (const HostTensor& state : session.states()) append(run.results, state);
  }
  return run;
}

enum class Outcome { refused, large, ended_in_error, ran };

/// Says how the answer to a changed plan is wrong; empty: it is right.
std::string try_plan(const Json& whole, uint64_t seed, Outcome& outcome) {
  PlanMutator mutator(seed);
  Json plan = whole;
  mutator.mutate(plan);
  outcome = Outcome::refused;
  auto read = read_plan(plan.dump(-1, ' ', false, Json::error_handler_t::replace));
  if (!read) return read.error().code == ExitCode::bad_input ? "" : read.error().message();
  const auto program = std::make_shared<const Program>(std::move(*read));
  const auto sizes = symbol_values_near(program->symbols, 1 + static_cast<int64_t>(seed % 6));
  outcome = Outcome::large;
  if (largest_of(*program, sizes) > kMaxElements) return {};
  const auto plain = run_guarded(program, sizes, false), poison = run_guarded(program, sizes, true);
  outcome = plain && !plain->has_errors ? Outcome::ran : Outcome::ended_in_error;
  if (plain.has_value() != poison.has_value()) return "a load fails with poison alone, or without";
  if (!plain) return plain.error().code == ExitCode::internal_error ? plain.error().message() : "";
  return plain->results == poison->results ? "" : "a byte that nobody wrote changes the results";
}

TEST_CASE("a changed plan is refused, or runs in its own memory on what has been written") {
  const uint64_t count = number("SINTER_MUTATIONS", kSampled), seed = number("SINTER_SEED", 1);
  const int processes = static_cast<int>(number("SINTER_PROCESSES", 1));
  const uint64_t first_item = number("SINTER_FIRST", 0);
  const Plans plans(count > kSampled || first_item > 0);
  std::map<std::string, uint64_t> outcomes;
  std::vector<std::string> failures;
  const auto work = [&](uint64_t first, uint64_t last, ItemReport& report) {
    for (uint64_t item = first; item < last; ++item) {
      report.begin(item);
      alarm(kSecondsOfItem);
      Outcome outcome = Outcome::refused;
      const std::string fault = try_plan(plans.of(item), seed * 1000003 + item, outcome);
      if (!fault.empty()) report.failed(item, fault);
      static constexpr const char* kNames[] = {"refused", "large", "ended in an error", "ran"};
      report.note(item, kNames[static_cast<int>(outcome)]);
    }
  };
  run_in_children(first_item, count, 50, processes, work,
                  {[&](uint64_t item, const std::string& what) {
                     failures.push_back(fmt::format("plan {}: {}", item, what));
                   },
                   [&](uint64_t, const std::string& outcome) { ++outcomes[outcome]; },
                   [](uint64_t) { return true; }});
  for (const auto& [outcome, times] : outcomes) MESSAGE(outcome, ": ", times);
  for (const std::string& failure : failures) FAIL_CHECK(failure);
  if (count < kSampled) return;
  CHECK(outcomes["refused"] > 0);
  CHECK(outcomes["ran"] > count / 20);
}

}  // namespace
}  // namespace sinter::test::plan_mutations_test
