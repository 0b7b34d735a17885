// Generation on a GPU without one: everything but the kernels' text. What is recorded is replayed
// with its own shapes and memory, every handle is given back whatever fails, and failures say what
// failed.
#include <doctest/doctest.h>

#include <filesystem>
#include <set>

#include "driver/backend.h"
#include "driver/bench/calls.h"
#include "driver/compile/compile.h"
#include "driver/generate/cuda_generator.h"
#include "driver/generate/decoder.h"
#include "driver/generate/feed_prompts.h"
#include "driver/host_kernels.h"
#include "driver/measure/resident_calls.h"
#include "ir/text.h"
#include "plan/plan_file.h"
#include "runtime/fake_cublaslt.h"
#include "runtime/host/executable.h"
#include "runtime/temporary_directory.h"
#include "support/result.h"

namespace sinter::fake_gpu_test {
namespace {

using Tokens = std::vector<int32_t>;
constexpr int kOutOfMemory = 2, kIllegalAddress = 700;

// A language model without matrix products: attention over embedded tokens and their positions.
constexpr std::string_view kModel = R"(module @tiny {
  symbol N in [1, 64]
  symbol M in [1, 64]
  symbol B in [1, 8]
  symbol R in [8, 512] step 8
  symbol K in [8, 512] step 8 at_most R
  weight %table : f32[64, 32] = { %i = iota {axis = 0} : i32[64, 32]
    %j = iota {axis = 1} : i32[64, 32]
    %m = mul %i, %i : i32[64, 32]
    %k = mul %m, %j : i32[64, 32]
    %f = cast %k : f32[64, 32]
    %t = sin %f : f32[64, 32]
    return %t
  }
  state %keys : f32[R, 32]
  state %values : f32[R, 32]
  entry @prefill(%tokens: i32[N], %pos: i32[N], %slot: i32[N], %first: i32[N], %wanted: i32[M]) -> (%logits) {
    %e = embedding %table, %tokens : f32[N, 32]
    %p = embedding %table, %pos : f32[N, 32]
    %x = add %e, %p : f32[N, 32]
    %k1 = kv_append %keys, %x, %slot : f32[R, 32]
    %k = slice %k1 {axis = 0, begin = 0, size = K} : f32[K, 32]
    %v1 = kv_append %values, %e, %slot : f32[R, 32]
    %v = slice %v1 {axis = 0, begin = 0, size = K} : f32[K, 32]
    %y = attention %x, %k, %v, %first, %slot {order = decode_attention, heads = 2, kv_heads = 2, scale = 1.0, splits = 2} : f32[N, 32]
    %z = add %x, %y : f32[N, 32]
    %logits = embedding %z, %wanted : f32[M, 32]
  }
  entry @decode(%tokens: i32[B], %pos: i32[B], %slot: i32[B], %first: i32[B]) -> (%logits) {
    %e = embedding %table, %tokens : f32[B, 32]
    %p = embedding %table, %pos : f32[B, 32]
    %x = add %e, %p : f32[B, 32]
    %k = kv_append %keys, %x, %slot : f32[R, 32]
    %v = kv_append %values, %e, %slot : f32[R, 32]
    %y = attention %x, %k, %v, %first, %slot {order = decode_attention, heads = 2, kv_heads = 2, scale = 1.0, splits = 2} : f32[B, 32]
    %logits = add %x, %y : f32[B, 32]
  }
  entry @sample(%logits: f32[B, 32], %pos: i32[B], %slot: i32[B], %step: i32[B], %seed: i32[B], %temperature: f32[B], %top_k: i32[B], %top_p: f32[B]) -> (%next.tokens, %next.step, %next.pos, %next.slot) {
    %one = constant {value = 1.0} : i32[]
    %next.tokens = sample %logits, %temperature, %top_k, %top_p, %seed, %step : i32[B]
    %next.step = add %step, %one : i32[B]
    %next.pos = add %pos, %one : i32[B]
    %next.slot = add %slot, %one : i32[B]
  }
}
)";

const FakeDriver& driver() {
  static const FakeDriver fake(SINTER_FAKE_DRIVER);
  return fake;
}

std::shared_ptr<const Program> program() {
  static const auto compiled = [] {
    Module module = value(parse_module(kModel, "tiny.sir"));
    return value(compile(value(freeze(std::move(module), {})), {})).program;
  }();
  return compiled;
}

std::shared_ptr<const Executable> on_gpu() {
  driver();
  return value(load_on_fake(program(), nullptr));
}

std::shared_ptr<const Executable> on_host() {
  return std::make_shared<HostExecutable>(value(HostExecutable::load(program(), nullptr)));
}

/// One generation and its tokens so far, all sequences of a step after one another.
struct Run {
  Run(std::shared_ptr<const Executable> model, const std::vector<Tokens>& prompts, int64_t most)
      : left(most),
        generator(value(Generator::create(std::move(model), prompts, most,
                                          {.temperature = 1.5f, .top_k = 20, .seed = 4}))) {}
  void take(int64_t steps) {
    for (; steps > 0 && left > 0; --steps, --left)
      for (int32_t token : value(generator->next())) tokens.push_back(token);
  }
  int64_t left;
  std::unique_ptr<Generator> generator;
  Tokens tokens;
};

const std::vector<std::vector<Tokens>> kPrompts = {
    {{1, 5, 9}}, {{4}, {7, 7, 7, 7, 2, 30, 11, 12, 13, 14}, {3, 8}}, {{9, 1, 2, 3, 4, 5, 6, 7, 8}}};
constexpr int64_t kMax[] = {14, 9, 21};

/// The tokens that fresh sessions on the host generate.
const std::vector<Tokens>& expected() {
  static const std::vector<Tokens> all = [] {
    std::vector<Tokens> list;
    for (size_t i = 0; i < kPrompts.size(); ++i) {
      Run run(on_host(), kPrompts[i], kMax[i]);
      run.take(kMax[i]);
      list.push_back(run.tokens);
    }
    return list;
  }();
  return all;
}

TEST_CASE("the loading of weights on a GPU is cancelled as on the CPU, and gives everything back") {
  driver();
  const FakeCublasLt library(SINTER_FAKE_CUBLASLT);
  const size_t before = driver().handles();
  for (const char* device : {"cpu", "cuda"}) {
    size_t asked = 0;
    BackendOptions options;
    options.device = device;
    options.progress = [&](size_t, size_t) { return ++asked == 0; };
    const auto backend = value(Backend::open(options));
    const auto loaded = backend->load({program()}, nullptr);
    REQUIRE_FALSE(loaded);
    CHECK(loaded.error().code == ExitCode::cancelled);
    CHECK(loaded.error().message() ==
          "the loading was cancelled after 8192 of 8192 bytes of weights; load again");
    CHECK(asked == 1);
  }
  CHECK(driver().handles() == before);
}

TEST_CASE("a session replays what it recorded, whatever others of other shapes do meanwhile") {
  const auto model = on_gpu();
  const size_t before = driver().handles();
  REQUIRE(std::set<int32_t>(expected()[2].begin(), expected()[2].end()).size() > 4);
  // One after the other, and again.
  for (size_t i : {0, 1, 2, 0, 1}) {
    Run run(model, kPrompts[i], kMax[i]);
    run.take(kMax[i]);
    CHECK(run.tokens == expected()[i]);
  }
  CHECK(driver().handles() == before);
  // All at once, in turns of a few steps; one begins late, one is left half-way.
  {
    Run a(model, kPrompts[0], kMax[0]), b(model, kPrompts[1], kMax[1]);
    a.take(3);
    b.take(2);
    Run c(model, kPrompts[2], kMax[2]), left(model, kPrompts[2], kMax[2]);
    left.take(4);
    while (a.left + b.left + c.left > 0) {
      c.take(5);
      b.take(1);
      a.take(2);
    }
    CHECK(a.tokens == expected()[0]);
    CHECK(b.tokens == expected()[1]);
    CHECK(c.tokens == expected()[2]);
  }
  CHECK(driver().handles() == before);
}

TEST_CASE("prompts in several calls give the tokens of prompts in one") {
  const auto model = on_gpu();
  const size_t before = driver().handles();
  for (size_t i = 0; i < kPrompts.size(); ++i)
    for (int64_t chunk : {1, 3, 4}) {
      PrefillOptions prefill;
      prefill.chunk = chunk;
      const auto generator = value(Generator::create(
          model, kPrompts[i], kMax[i], {.temperature = 1.5f, .top_k = 20, .seed = 4}, {}, prefill));
      Tokens tokens;
      for (int64_t step = 0; step < kMax[i]; ++step)
        for (int32_t token : value(generator->next())) tokens.push_back(token);
      CHECK(tokens == expected()[i]);
    }
  CHECK(driver().handles() == before);
}

TEST_CASE("calls that read nothing of each other reside in one arena, and give the host's logits") {
  const auto model = on_gpu(), host = on_host();
  const llvm::ArrayRef<Symbol> symbols = program()->symbols;
  constexpr int64_t kCapacity = 16;
  const std::vector<Tokens>& prompts = kPrompts[1];
  for (int64_t chunk : {1, 4, 13}) {
    CAPTURE(chunk);
    std::vector<ResidentCall> calls;
    std::vector<int64_t> values;
    for (const PromptCall& part : cut_prompts(prompts, chunk)) {
      DecoderCall call = pack_sequences("prefill", symbols, part.tokens, part.lengths, kCapacity,
                                        Wanted::last_of_each);
      values = call.symbol_values;
      calls.push_back(resident_call(*program(), "prefill", values, std::move(call.inputs)));
    }
    const auto resident = value(ResidentCalls::create(value(model->new_session(values)), calls));
    const auto session = value(host->new_session(values));
    const HostTensor expected =
        value(feed_prompts(*session, *program(), prompts, kCapacity, chunk));
    const size_t row = expected.bytes.size() / prompts.size();
    for (int repeat = 0; repeat < 2; ++repeat) {
      require(resident.enqueue());
      const HostTensor logits = value(read_output(resident.calls().back(), 0, resident.stream()));
      CHECK(std::equal(logits.bytes.end() - static_cast<ptrdiff_t>(row), logits.bytes.end(),
                       expected.bytes.end() - static_cast<ptrdiff_t>(row)));
    }
  }
}

TEST_CASE("a generation that begins again gives the same tokens") {
  const auto model = on_gpu();
  const size_t before = driver().handles();
  for (size_t i = 0; i < kPrompts.size(); ++i) {
    CAPTURE(i);
    const Sampling sampling{.temperature = 1.5f, .top_k = 20, .seed = 4};
    Started state = value(start_generation(*model, kPrompts[i], kMax[i], sampling, {}));
    const auto generator = value(record_generation(model, std::move(state), kMax[i]));
    for (const int64_t steps : {int64_t{0}, kMax[i], kMax[i], int64_t{6}, int64_t{1}, kMax[i]}) {
      CAPTURE(steps);
      REQUIRE(generator->restart());
      Tokens tokens;
      for (int64_t step = 0; step < steps; ++step)
        for (int32_t token : value(generator->next())) tokens.push_back(token);
      CHECK(tokens == Tokens(expected()[i].begin(), expected()[i].begin() + tokens.size()));
    }
  }
  CHECK(driver().handles() == before);
}

TEST_CASE("calls of a session in memory that grows and is used again give the host's bits") {
  const auto gpu = on_gpu(), host = on_host();
  Decoder on_device = value(Decoder::create(gpu, 3, 64)),
          reference = value(Decoder::create(host, 3, 64));
  const auto same = [](Result<RunResult> a, Result<RunResult> b) {
    CHECK(value(std::move(a)).outputs[0].bytes == value(std::move(b)).outputs[0].bytes);
  };
  const auto prompts = [](size_t length) {
    return std::vector<Tokens>{Tokens(length, 3), Tokens(1, 4), Tokens(length / 2 + 1, 5)};
  };
  for (const bool poison : {false, true}) {
    CallOptions options;
    options.poison_freed = poison;
    for (size_t length : {1, 17, 2}) {  // the second needs a larger arena, the third has it
      same(on_device.prefill(prompts(length), options), reference.prefill(prompts(length)));
      same(on_device.decode({1, 2, 3}, options), reference.decode({1, 2, 3}));
    }
  }
}

/// The model with another position in its decode step: row pos + 1 of a table of 12.
std::shared_ptr<const Program> computing_program() {
  std::string text(kModel);
  const auto replace = [&](std::string_view from, std::string_view to, size_t after) {
    const size_t at = text.find(from, after);
    REQUIRE(at != std::string::npos);
    text.replace(at, from.size(), to);
  };
  replace("%p = embedding %table, %pos : f32[B, 32]",
          "%one = constant {value = 1.0} : i32[]\n    %next = add %pos, %one : i32[B]\n"
          "    %p = embedding %few, %next : f32[B, 32]",
          text.find("@decode"));
  replace("  state %keys", "  weight %few : f32[12, 32] = constant {value = 0.5}\n  state %keys",
          0);
  return value(compile(value(freeze(value(parse_module(text, "few.sir")), {})), {})).program;
}

TEST_CASE("a row number that a decode step computes, and that names no row, ends a generation") {
  const auto few = computing_program();
  driver();
  const size_t before = driver().handles();
  const auto generate = [&](std::shared_ptr<const Executable> model, int64_t most, Tokens& tokens) {
    auto generator = value(Generator::create(std::move(model), {{3, 4, 5, 6}}, most,
                                             {.temperature = 1.5f, .top_k = 20, .seed = 4}));
    for (int64_t step = 0; step < most; ++step) {
      const auto next = generator->next();
      if (!next) return next.error().message();
      tokens.push_back((*next)[0]);
    }
    return std::string("fine");
  };
  const auto on_host = std::make_shared<HostExecutable>(value(HostExecutable::load(few, nullptr)));
  {
    const std::shared_ptr<const Executable> on_gpu = value(load_on_fake(few, nullptr));
    // The prompt has positions 0 .. 3; a decode step at position p reads row p + 1, the last is 11.
    // So seven steps can be made, which choose the tokens 2 .. 8.
    for (const int64_t most : {8, 9, 12, 30}) {
      CAPTURE(most);
      Tokens host, gpu;
      const std::string said = generate(on_host, most, host);
      CHECK(generate(on_gpu, most, gpu) == said);
      CHECK(said == (most == 8 ? "fine"
                               : "entry decode, %p: %next[0] is 12, outside the 0 .. 11 that it "
                                 "points into; the module computes it: check the module and the "
                                 "inputs"));
      REQUIRE(host.size() == 8);
      CHECK(gpu == host);
    }
  }
  CHECK(driver().handles() == before);
}

/// Loads and generates all; the error, or none.
Status generate_all() {
  SINTER_LET(model, load_on_fake(program(), nullptr));
  constexpr int64_t kTokens = 10;  // two graphs and a rest
  SINTER_LET(generator, Generator::create(model, kPrompts[1], kTokens, {}));
  for (int64_t step = 0; step < kTokens; ++step) SINTER_TRY(generator->next());
  return {};
}

TEST_CASE("whichever allocation fails, the error says so and every handle is given back") {
  const size_t before = driver().handles();
  driver().fail("", SIZE_MAX, kOutOfMemory);
  REQUIRE(generate_all());
  const size_t count = driver().calls();
  REQUIRE(count > 25);
  size_t of_memory = 0;
  for (size_t k = 0; k < count; ++k) {
    CAPTURE(k);
    driver().fail("", k, kOutOfMemory);
    const Status status = generate_all();
    driver().fail("", 0, 0);
    REQUIRE_FALSE(status);
    const Error& error = status.error();
    CAPTURE(error.message());
    CHECK(error.code == ExitCode::device);
    CHECK(error.message().find('\n') == std::string::npos);
    CHECK(error.message().find("device 0 (Fake GPU 0)") != std::string::npos);
    const bool memory = error.what.starts_with("no device memory for ");
    if (memory)
      CHECK(error.what.find(" MB wanted, 1073.7 MB of 1073.7 MB free") != std::string::npos);
    else
      CHECK(error.what.find("(2)") != std::string::npos);
    of_memory += memory;
    CHECK(driver().handles() == before);
  }
  CHECK(of_memory >= 6);  // weights, states, arenas of run(), the state of generation
  CHECK(generate_all());
}

TEST_CASE("an illegal address ends a run at the call that reports it, and nothing is left") {
  const size_t before = driver().handles();
  for (const char* call : {"cuLaunchKernelEx", "cuStreamSynchronize", "cuGraphLaunch",
                           "cuEventRecord", "cuEventRecordWithFlags", "cuStreamWaitEvent",
                           "cuEventSynchronize", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2"}) {
    CAPTURE(call);
    driver().fail(call, SIZE_MAX, kIllegalAddress);
    REQUIRE(generate_all());
    const size_t count = driver().calls();
    REQUIRE(count > 0);
    for (size_t k = 0; k < count; ++k) {
      CAPTURE(k);
      driver().fail(call, k, kIllegalAddress);
      const Status status = generate_all();
      driver().fail("", 0, 0);
      // The last wait is made by a generator that ends, which nobody asks any more.
      if (std::string(call) == "cuStreamSynchronize" && k + 1 == count) {
        CHECK(status);
        CHECK(driver().handles() == before);
        continue;
      }
      REQUIRE_FALSE(status);
      const std::string message = status.error().message();
      CAPTURE(message);
      CHECK(status.error().code == ExitCode::device);
      CHECK(message.find('\n') == std::string::npos);
      std::string name = call;
      if (name.ends_with("_v2")) name.resize(name.size() - 3);
      CHECK(message.find(name) != std::string::npos);
      CHECK(message.find(": CUDA_ERROR_ILLEGAL_ADDRESS (700): ") != std::string::npos);
      CHECK(driver().handles() == before);
    }
  }
  CHECK(generate_all());
}

TEST_CASE("grids have one dimension, so that only the number of blocks in x has a limit") {
  driver().take_launches();
  REQUIRE(generate_all());
  const auto launches = driver().take_launches();
  CHECK(launches.size() > 20);
  for (const FakeLaunch& launch : launches) {
    CHECK(launch.grid[0] >= 1);
    CHECK(launch.grid[1] == 1);
    CHECK(launch.grid[2] == 1);
    CHECK(launch.block[0] <= 1024);
    CHECK(launch.block[1] == 1);
    CHECK(launch.block[2] == 1);
  }
}

TEST_CASE("a launch of 2^31 - 1 blocks is made, of one more it is an error") {
  driver();
  const char* const text = R"(module @wide {
  symbol N in [0, 2147483648]
  symbol M in [0, 64]
  entry @main(%x: f32[N, M, 256]) -> (%y) {
    %y = softmax %x : f32[N, M, 256]
  }
})";
  const auto wide =
      value(compile(value(freeze(value(parse_module(text, "wide.sir")), {})), {})).program;
  const int64_t per_block = wide->kernels[0].launch.items_per_block;
  const auto device = value(CudaDevice::open(0));
  auto weights = value(CudaWeights::load(device, *wide, nullptr));
  auto library = std::make_shared<const CudaLibrary>(value(CudaLibrary::load(device, "code", "k")));
  const auto model = value(CudaExecutable::assemble(wide, device, nullptr, std::move(weights),
                                                    {library}, {value(library->kernel("k"))}));
  const auto made = value(model->new_session({1, 1}));
  const auto& session = *made->on_cuda();
  const auto launched = [&](int64_t rows) -> Status {
    driver().take_launches();
    SINTER_LET(call, session.place("main", {rows, per_block}, {CudaAddress{256}}, 256));
    SINTER_TRY(session.enqueue(call, session.stream()));
    return session.stream().synchronize("a test");
  };
  constexpr int64_t kMax = INT32_MAX;
  REQUIRE(launched(kMax));
  const auto launches = driver().take_launches();
  REQUIRE(launches.size() == 1);
  CHECK(launches[0].grid[0] == kMax);
  const Status refused = launched(kMax + 1);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message() ==
        "entry main, step 0 (%y): 2147483648 blocks, a launch has at most 2147483647; run fewer "
        "tokens at a time");
  CHECK(refused.error().code == ExitCode::device);
  CHECK(driver().take_launches().empty());
  REQUIRE(launched(0));
  CHECK(driver().take_launches().empty());
}

TEST_CASE("machine code that is there is loaded, and nothing is compiled") {
  driver();
  const TemporaryDirectory place;
  const KernelCache cache(place.path() + "/cache");
  const auto device = value(CudaDevice::open(0));
  std::shared_ptr<const CudaWeights> weights =
      value(CudaWeights::load(device, *program(), nullptr));
  MachineCodeByText code;
  for (const Kernel& kernel : program()->kernels) code[text_hash(kernel)] = "code";
  // As a plan is read: without text.
  Program read = value(read_plan(write_plan(*program())));
  const auto load = [&](const Program& plan) {
    return CudaExecutable::load(std::make_shared<const Program>(plan), device, nullptr, weights, {},
                                cache, code);
  };
  const auto model = load(read);
  REQUIRE_MESSAGE(model.has_value(), (model ? "" : model.error().message()));
  CHECK(!std::filesystem::exists(cache.directory()));
  // One kernel has neither.
  code.erase(text_hash(read.kernels[1]));
  const auto refused = load(read);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ExitCode::bad_input);
  CHECK(refused.error().message() ==
        fmt::format("kernel {}: there is neither machine code for {} nor CUDA text; compile the "
                    "model with --arch {}",
                    read.kernels[1].name, device->arch(), device->arch()));
}

}  // namespace
}  // namespace sinter::fake_gpu_test
