// Ranks on the CPU: a network whose layers are divided among 1, 2 and 4 ranks, against the whole
// network in float64; the commands with --ranks.
#include "driver/ranks.h"

#include <doctest/doctest.h>

#include <cstring>

#include "cli/program.h"
#include "driver/compile/compile.h"
#include "driver/run/ranks.h"
#include "driver/verify/error_bound.h"
#include "driver/verify/report.h"
#include "ir/text.h"
#include "runtime/evaluate/evaluate.h"
#include "runtime/host/executable.h"
#include "runtime/random_inputs.h"
#include "support/result.h"

namespace sinter::ranks_test {
namespace {

constexpr int64_t kTokens = 6, kWidth = 64, kHidden = 128;
constexpr size_t kLayers = 2;

/// Two layers x + down(silu(up(norm(x)))). A rank has rows of up and columns of down; the sum over
/// the ranks is that of all columns. No rank: the whole network.
std::string network(std::string_view type, int64_t hidden, bool reduced) {
  std::string inputs, body, before = "x";
  for (size_t i = 0; i < kLayers; ++i) {
    inputs +=
        fmt::format(", %up{0}: {1}[{2}, {3}], %down{0}: {1}[{3}, {2}]", i, type, hidden, kWidth);
    body += fmt::format(R"(    %norm{0} = rms_norm %{1}, %scale {{eps = 0x1p-20}} : {2}[N, {3}]
    %wide{0} = linear %norm{0}, %up{0} : {2}[N, {4}]
    %act{0} = silu %wide{0} : {2}[N, {4}]
    %part{0} = linear %act{0}, %down{0} : {2}[N, {3}]
    %sum{0} = {5} : {2}[N, {3}]
    %y{0} = add %{1}, %sum{0} : {2}[N, {3}]
)",
                        i, before, type, kWidth, hidden,
                        reduced ? fmt::format("all_reduce %part{} {{group = \"tp\"}}", i)
                                : fmt::format("copy %part{}", i));
    before = fmt::format("y{}", i);
  }
  return fmt::format(
      "module @m {{\n  symbol N in [1, 64]\n  entry @f(%x: {0}[N, {1}], %scale: {0}[{1}]{2}) -> "
      "(%{3}) "
      "{{\n{4}  }}\n}}\n",
      type, kWidth, inputs, before, body);
}

/// x, scale, up0, down0, up1, down1 of the whole network.
std::vector<HostTensor> whole_inputs(DType dtype, uint64_t seed) {
  std::vector<HostTensor> inputs;
  const auto add = [&](std::vector<int64_t> dims) {
    inputs.push_back(value(random_tensor(dtype, std::move(dims), seed * 100 + inputs.size())));
  };
  add({kTokens, kWidth});
  add({kWidth});
  for (size_t i = 0; i < kLayers; ++i) {
    add({kHidden, kWidth});
    add({kWidth, kHidden});
  }
  return inputs;
}

/// Rows, or columns, `begin` .. of a matrix.
HostTensor part(const HostTensor& whole, size_t axis, int64_t begin, int64_t size) {
  std::vector<int64_t> dims = whole.dims;
  dims[axis] = size;
  HostTensor result = value(make_tensor(whole.dtype, dims));
  const size_t element = whole.bytes.size() / static_cast<size_t>(whole.volume());
  for (int64_t row = 0; row < dims[0]; ++row) {
    const int64_t from = axis == 0 ? (begin + row) * dims[1] : row * whole.dims[1] + begin;
    std::memcpy(result.bytes.data() + row * dims[1] * element, whole.bytes.data() + from * element,
                dims[1] * element);
  }
  return result;
}

std::vector<HostTensor> inputs_of(const std::vector<HostTensor>& whole, size_t rank, size_t ranks) {
  const int64_t size = kHidden / static_cast<int64_t>(ranks),
                begin = static_cast<int64_t>(rank) * size;
  std::vector<HostTensor> inputs = {whole[0], whole[1]};
  for (size_t i = 0; i < kLayers; ++i) {
    inputs.push_back(part(whole[2 + 2 * i], 0, begin, size));
    inputs.push_back(part(whole[3 + 2 * i], 1, begin, size));
  }
  return inputs;
}

HostExecutable loaded(const std::string& text, bool fused) {
  CompileOptions options;
  options.fusion.enabled = fused;
  Module module = value(freeze(value(parse_module(text, "ranks.sir")), {}));
  const Compiled compiled = value(compile(std::move(module), options));
  return value(HostExecutable::load(compiled.program, nullptr));
}

/// The output and the sums of each rank.
std::vector<RunResult> run_on(const HostExecutable& executable,
                              const std::vector<HostTensor>& whole, size_t ranks) {
  RankGroup group(ranks);
  std::vector<RunResult> results(ranks);
  require(on_ranks(group, [&](size_t rank) -> Status {
    SINTER_LET(session, executable.new_session({kTokens}));
    const std::vector<HostTensor> inputs = inputs_of(whole, rank, ranks);
    SINTER_LET(
        result,
        session->run(
            "f", {kTokens}, addresses_of(inputs),
            {.poison_freed = true, .keep = {"sum0", "sum1"}, .ranks = &group, .rank = rank}));
    results[rank] = std::move(result);
    return {};
  }));
  return results;
}

TEST_CASE("a network on 1, 2 and 4 ranks: the same bits on all, as near to float64 as the whole") {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const HostExecutable whole = loaded(network(to_string(dtype), kHidden, false), false);
    const Module module =
        value(parse_module(network(to_string(dtype), kHidden, false), "whole.sir"));
    for (const size_t ranks : {1, 2, 4}) {
      CAPTURE(ranks);
      const std::string text =
          network(to_string(dtype), kHidden / static_cast<int64_t>(ranks), true);
      const HostExecutable fused = loaded(text, true), unfused = loaded(text, false);
      CHECK(fused.program().entries[0].steps.size() < unfused.program().entries[0].steps.size());
      std::vector<ErrorBound> bounds;
      for (uint64_t seed = 1; seed <= 8; ++seed) {
        const std::vector<HostTensor> inputs = whole_inputs(dtype, seed);
        const std::vector<RunResult> got = run_on(fused, inputs, ranks);
        const std::vector<RunResult> apart = run_on(unfused, inputs, ranks);
        for (size_t rank = 0; rank < ranks; ++rank) {
          CHECK(got[rank].outputs[0].bytes == got[0].outputs[0].bytes);
          CHECK(got[rank].outputs[0].bytes == apart[rank].outputs[0].bytes);
          for (size_t i = 0; i < kLayers; ++i) {
            CHECK(got[rank].kept[i].second.bytes == got[0].kept[i].second.bytes);
            CHECK(got[rank].kept[i].second.bytes == apart[rank].kept[i].second.bytes);
          }
        }
        const auto session = value(whole.new_session({kTokens}));
        const RunResult one = value(session->run("f", {kTokens}, addresses_of(inputs)));
        if (ranks == 1) CHECK(got[0].outputs[0].bytes == one.outputs[0].bytes);
        const auto exact = value(evaluate(module.entries[0].graph, module.symbols, {kTokens},
                                          addresses_of(inputs), {.precise = true}));
        require(add_errors("y", got[0].outputs[0], one.outputs[0], exact[0], bounds));
      }
      REQUIRE(bounds.size() == 1);
      CHECK(bounds[0].fused.rms() > 0);
      // Of a 16-bit type each rank rounds its part of the sum, which the whole network does not.
      if (dtype == DType::f32) CHECK(bounds[0].holds());
    }
  }
}

constexpr const char* kModule = R"(module @m {
  symbol N in [1, 64]
  weight %w : f32[16, 16] = file {tensor = "w"}
  entry @f(%x: f32[N, 16]) -> (%y) {
    %p = linear %x, %w : f32[N, 16]
    %s = all_reduce %p {group = "tp"} : f32[N, 16]
    %y = silu %s : f32[N, 16]
  }
}
)";

TEST_CASE("verify and run take ranks, each with its own weights and inputs") {
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/m.sir";
  write_whole(path, kModule);
  const ProgramRun verified =
      run_program({"verify", path, "--ranks", "3", "--random-weights", "1", "--device", "cpu"});
  CAPTURE(verified.err);
  CHECK(verified.code == 0);
  CHECK(verified.out.find("3, each with the same bits of 1 all_reduce result") !=
        std::string::npos);

  const auto backend = value(Backend::open({.device = "cpu", .record = {}, .progress = {}}));
  OpenOptions open;
  open.random_weights = 1;
  const RunOptions run{backend, {"p"}, {}};
  const std::vector<TokenRun> ranks = value(run_ranks(path, open, {}, run, 2));
  REQUIRE(ranks.size() == 2);
  const auto& named = [](const TokenRun& one, std::string_view name) -> const HostTensor& {
    for (const NamedHostTensor& result : one.values)
      if (result.name == name) return result.tensor;
    FAIL("no value " << name);
    return one.values[0].tensor;
  };
  CHECK(named(ranks[0], "y").bytes == named(ranks[1], "y").bytes);
  CHECK(named(ranks[0], "p").bytes != named(ranks[1], "p").bytes);
}

TEST_CASE("ranks: what the commands refuse, and a rank that fails ends all") {
  CHECK(check_ranks(1, true));
  CHECK(check_ranks(8, false));
  const Status refused = check_ranks(2, true);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message().find("collectives on several GPUs are not built") !=
        std::string::npos);
  CHECK(of_rank("in.{rank}.npz", 12) == "in.12.npz");

  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/m.sir", input = folder.path() + "/in.{rank}.npy";
  write_whole(path, kModule);
  const HostTensor x = value(random_tensor(DType::f32, {3, 16}, 1));
  require(write_tensors(of_rank(input, 0), {{"x", x}}));
  const ProgramRun missing = run_program(
      {"run", path, "--ranks", "2", "--random-weights", "1", "--inputs", input, "--device", "cpu"});
  CHECK(missing.code != 0);
  CHECK(missing.err.find("rank 1: ") != std::string::npos);
  CHECK(missing.err.find("in.1.npy") != std::string::npos);
  const ProgramRun one_file =
      run_program({"run", path, "--ranks", "2", "--random-weights", "1", "--random-inputs", "1",
                   "--out", folder.path() + "/out.npz", "--device", "cpu"});
  CHECK(one_file.code == 2);
  CHECK(one_file.err.find("put {rank} into its name") != std::string::npos);
}

}  // namespace
}  // namespace sinter::ranks_test
