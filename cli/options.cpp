#include "cli/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>

#include "cli/integer_options.h"
#include "cli/output.h"
#include "driver/ranks.h"
#include "driver/streaming.h"
#include "driver/text_table.h"

namespace sinter {
namespace {

constexpr int64_t kMaxCalls = int64_t{1} << 30;

Status add_pairs(const std::vector<std::string>& texts, const char* option,
                 std::vector<std::pair<std::string, std::string>>& pairs) {
  for (const std::string& text : texts) {
    const size_t comma = text.find(',');
    if (comma == 0 || comma == std::string::npos || comma + 1 == text.size() ||
        text.find(',', comma + 1) != std::string::npos)
      return fail(fmt::format("{} takes two names with a comma between, not \"{}\"", option,
                              printable(text)),
                  "", "e.g. l0.res1,l0.norm2", ExitCode::usage);
    pairs.emplace_back(text.substr(0, comma), text.substr(comma + 1));
  }
  return {};
}

/// Prints each note once: a command may load a model several times.
std::function<void(const std::string&)> new_notes() {
  return [known = std::make_shared<std::set<std::string>>()](const std::string& text) {
    if (known->insert(text).second) note(text);
  };
}

}  // namespace

void add_model(CLI::App& command, CommandOptions& options) {
  command
      .add_option(
          "MODEL", options.model,
          "Hugging Face folder, .gguf, llama2.c .bin, spec .json, module .sir or its folder; "
          "except to compile, also the folder of a compiled plan")
      ->required();
  command
      .add_option("--dtype", options.dtype,
                  "compute in fp32, fp16 or bf16; default: the model's own")
      ->type_name("TYPE");
  command
      .add_option("--weights", options.weights,
                  "safetensors that the model's weights are read from, or their folder")
      ->type_name("FILE|DIR");
  add_integer(command, "--random-weights", options.random_weights,
              "stand-in weights made from a seed; the model's own stay unread")
      ->type_name("SEED");
  add_ignored_keys(command, options);
}

void add_ignored_keys(CLI::App& command, CommandOptions& options) {
  command
      .add_option("--ignore-key", options.ignored_keys,
                  "a key of config.json that is not known and changes no result; repeatable")
      ->type_name("NAME")
      ->allow_extra_args(false);
}

void add_recompile(CLI::App& command, CommandOptions& options) {
  command.add_flag("--recompile", options.recompile,
                   "of a plan's folder: compile its module again; no kernel of the folder runs");
}

void add_compiling(CLI::App& command, CommandOptions& options) {
  options.compiles = true;
  command
      .add_option("--arch", options.archs, "compile for this device; `sinter devices` lists them")
      ->type_name("NAME")
      ->default_str(CompileOptions().target)
      ->allow_extra_args(false)
      ->delimiter(',');
  command
      .add_option(
          "--numerics", options.numerics,
          "strict: fused = unfused, bit for bit; fast: fewer roundings, and as close to float64")
      ->type_name("strict|fast")
      ->default_str("strict");
  command
      .add_option("--attention", options.attention,
                  "of many tokens: tiled, one kernel (of 16-bit types on tensor cores); composed, "
                  "products and a softmax with scores in memory; or relaxed, tiled even where a "
                  "module rounds the scores to 16 bits")
      ->type_name("tiled|composed|relaxed")
      ->default_str("tiled");
  command
      .add_option(
          "--products", options.products,
          "of more than eight tokens: library, by cuBLASLt, or own, by Sinter's kernel on "
          "tensor cores (16-bit types, sm_90a, from five tokens on) with an epilogue; auto: "
          "own in strict numerics where it was measured to be faster, for few sequences "
          "and long epilogues")
      ->type_name("auto|library|own")
      ->default_str("auto");
  command.add_flag(
      "--invariant", options.invariant,
      "a token's results, bit for bit, do not depend on the other sequences of a call, "
      "nor on how its text was cut into calls");
  command
      .add_option(
          "--dequantize", options.dequantize,
          "quantized matrices of more than eight tokens: 32, unrounded; or 16, rounded to the "
          "tokens' 16-bit type, for the library's products of that type")
      ->type_name("32|16")
      ->default_str("32");
  command.add_flag("--no-fuse", options.no_fuse, "a kernel for every op");
  command
      .add_option("--require", options.required,
                  "two values or modules that must share a kernel; repeatable")
      ->type_name("A,B")
      ->allow_extra_args(false);
  command
      .add_option("--forbid", options.forbidden, "two values or modules that must not; repeatable")
      ->type_name("A,B")
      ->allow_extra_args(false);
  add_integer(command, "--stop-after", options.stop_after, "make the first K fusions only",
              kNotNegative)
      ->type_name("K");
}

void add_phase(CLI::App& command, CommandOptions& options) {
  command.add_option("--phase", options.phase, "only this entry of the model")
      ->type_name("prefill|decode");
}

void add_inputs(CLI::App& command, InputOptions& options) {
  command
      .add_option("--inputs", options.file,
                  "safetensors or .npz with a tensor ENTRY.NAME or NAME for every input of the "
                  "entries; .npy: "
                  "the only input")
      ->type_name("FILE");
  add_integer(command, "--random-inputs", options.random,
              "inputs made from a seed, others in each call")
      ->type_name("SEED");
  command.add_option("--symbol", options.symbols, "a size that no input tells")
      ->type_name("NAME=VALUE");
  add_integer(command, "--calls", options.calls,
              "how many times the entries are called; states keep their values between calls",
              IntegerRange<int64_t>{1, kMaxCalls})
      ->default_str("1");
}

void add_ranks(CLI::App& command, size_t& ranks) {
  add_integer(
      command, "--ranks", ranks,
      "ranks of a module with collectives, on the CPU; rank r has random weights and inputs "
      "of the seeds plus r, and files of its own where a name has {rank}",
      IntegerRange<size_t>{1, kMaxRanks})
      ->capture_default_str();
}

void add_device(CLI::App& command, CommandOptions& options) {
  command.add_option("--device", options.device, "where to run")
      ->type_name("auto|cpu|cuda[:N]")
      ->capture_default_str();
  command.add_flag("--slow-products", options.slow_products,
                   "GPU: matrix products by a slow kernel, not cuBLASLt: for compute-sanitizer");
  command
      .add_option("--record", options.record,
                  "GPU: which implementation computes each matrix product, and no other is taken; "
                  "forms of streaming weights")
      ->type_name("FILE");
}

void add_streaming(CLI::App& command, CommandOptions& options) {
  command
      .add_option(
          "--kv", options.kv,
          "a cache of bounded size: the first S tokens and the last W; text may be of any length")
      ->type_name("sink=S,window=W");
}

void add_sizes(CLI::App& command, CommandOptions& options) {
  command
      .add_option("--symbol", options.sizes,
                  "a size at which bytes and times are stated; others have usual values")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
}

void add_activation_memory(CLI::App& command, CommandOptions& options) {
  constexpr const char* kName = "--activation-memory";
  command
      .add_option_function<std::string>(
          kName,
          [&options](const std::string& text) {
            options.activation_bytes = option_value(parse_memory(text, kName));
          },
          "what the intermediate values of a call may take at most; longer prompts and more texts "
          "are fed in several calls")
      ->type_name("SIZE")
      ->default_str("2GB");
}

void add_prefill(CLI::App& command, CommandOptions& options) {
  add_activation_memory(command, options);
  add_integer(command, "--prefill-chunk", options.prefill_chunk,
              "tokens of prompts that a call takes at most; default: as many as its memory allows",
              kPositive);
}

void add_routing(CLI::App& command, ExpertRouting& routing) {
  command
      .add_option_function<std::string>(
          "--routing",
          [&routing](const std::string& text) {
            routing = option_value(parse_expert_routing(text));
          },
          "which experts tokens choose: random, those that the weights choose; uniform, all "
          "equally often; skewed, expert e drawn with the weight 1 / (e + 1)")
      ->type_name("random|uniform|skewed")
      ->default_str("random");
}

void add_json(CLI::App& command, CommandOptions& options) {
  command.add_flag("--json", options.json, "the result as JSON");
}

void add_verbosity(CLI::App& command) {
  command.add_flag_callback(
      "-v,--verbose", [] { verbosity = Verbosity::verbose; }, "say more");
  command.add_flag_callback(
      "-q,--quiet", [] { verbosity = Verbosity::quiet; }, "errors and results only");
}

Result<std::vector<std::pair<std::string, int64_t>>> parse_sizes(
    const std::vector<std::string>& texts) {
  std::vector<std::pair<std::string, int64_t>> sizes;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      return fail(fmt::format("\"{}\" is not NAME=VALUE", printable(text)), "--symbol",
                  "write for example K=16", ExitCode::usage);
    const std::string name = text.substr(0, equals);
    SINTER_LET(value, parse_integer<int64_t>(std::string_view(text).substr(equals + 1),
                                             fmt::format("--symbol {}", name), kNotNegative));
    for (const auto& [other, size] : sizes)
      if (other == name)
        return fail(fmt::format("{} is given twice, as {} and as {}", printable(name), size, value),
                    "--symbol", "give each size once", ExitCode::usage);
    sizes.emplace_back(name, value);
  }
  return sizes;
}

PrefillOptions to_prefill(const CommandOptions& options) {
  return {options.activation_bytes.value_or(kActivationBytes), options.prefill_chunk, {}};
}

Result<CallsOptions> to_calls(const InputOptions& options) {
  CallsOptions calls;
  calls.inputs = options.file;
  calls.seed = options.random;
  calls.repeat = options.calls.value_or(1);
  SINTER_LET(symbols, parse_sizes(options.symbols));
  calls.symbols = std::move(symbols);
  if (!options.file.empty() && options.random)
    return fail(fmt::format("--random-inputs {} stands beside it", *options.random),
                fmt::format("--inputs {}", printable(options.file)), "give one of the two",
                ExitCode::usage);
  return calls;
}

/// A plan was compiled with options of its own.
Status refuse_compiling(const CommandOptions& options) {
  for (const auto& [given, option] : {std::pair(!options.archs.empty(), "--arch"),
                                      {!options.numerics.empty(), "--numerics"},
                                      {!options.attention.empty(), "--attention"},
                                      {!options.products.empty(), "--products"},
                                      {options.invariant, "--invariant"},
                                      {!options.dequantize.empty(), "--dequantize"},
                                      {options.no_fuse, "--no-fuse"},
                                      {!options.required.empty(), "--require"},
                                      {!options.forbidden.empty(), "--forbid"},
                                      {options.stop_after != -1, "--stop-after"}})
    if (given)
      return fail("a plan is compiled already", option,
                  "leave it out, or compile the model with it", ExitCode::usage);
  return {};
}

Result<BuildRequest> to_request(const CommandOptions& options) {
  if (options.compiles && is_plan_folder(options.model)) SINTER_TRY(refuse_compiling(options));
  BuildRequest request;
  request.path = options.model;
  request.load.recompile = options.recompile;
  if (!options.dtype.empty()) {
    SINTER_LET(dtype, parse_dtype_option(options.dtype));
    request.load.dtype = dtype;
  }
  request.load.random_weights = options.random_weights;
  request.load.weights = options.weights;
  request.load.ignored_keys = options.ignored_keys;
  request.load.sequences = options.sequences;
  request.load.note = new_notes();
  if (options.weights && options.weights->empty())
    return fail("the path is empty", "--weights", "give a safetensors file or a folder",
                ExitCode::usage);
  if (options.weights && options.random_weights)
    return fail(fmt::format("--random-weights {} stands beside it", *options.random_weights),
                fmt::format("--weights {}", printable(*options.weights)), "give one of the two",
                ExitCode::usage);
  if (!options.kv.empty()) {
    SINTER_LET(streaming, parse_streaming(options.kv));
    request.load.streaming = streaming;
  }
  const std::optional<Numerics> numerics =
      options.numerics.empty() ? Numerics::strict : parse_numerics(options.numerics);
  if (!numerics)
    return fail(fmt::format("no such mode: \"{}\"", printable(options.numerics)), "--numerics",
                "give strict or fast", ExitCode::usage);
  if (options.archs.size() > 1 && !options.several_archs)
    return fail(fmt::format("{} devices", options.archs.size()), "--arch",
                "give one; `sinter compile` takes several", ExitCode::usage);
  if (!options.archs.empty()) request.compile.target = options.archs.front();
  if (!options.phase.empty()) request.compile.entries = {options.phase};
  SINTER_LET(sizes, parse_sizes(options.sizes));
  request.compile.sizes = std::move(sizes);
  if (!options.attention.empty())
    SINTER_TRY(choose_attention(options.attention, "--attention", request.compile.recipe));
  if (!options.products.empty())
    SINTER_TRY(choose_products(options.products, "--products", request.compile.recipe));
  if (options.dequantize == "16")
    request.compile.recipe.codes = Recipe::Codes::rounded;
  else if (!options.dequantize.empty() && options.dequantize != "32")
    return fail(fmt::format("no such type: \"{}\"", printable(options.dequantize)), "--dequantize",
                "give 32 or 16", ExitCode::usage);
  FusionOptions& fusion = request.compile.fusion;
  fusion.enabled = !options.no_fuse;
  fusion.stop_after = options.stop_after;
  fusion.numerics = *numerics;
  if (options.invariant) SINTER_TRY(choose_invariant("--invariant", request.compile));
  SINTER_TRY(add_pairs(options.required, "--require", fusion.required));
  SINTER_TRY(add_pairs(options.forbidden, "--forbid", fusion.forbidden));
  return request;
}

Result<std::shared_ptr<Backend>> open_backend(const CommandOptions& options, bool tune) {
  BackendOptions backend;
  backend.device = options.device;
  SINTER_LET(stored, stored_record(options.model));
  if (!stored.empty() && !options.record.empty())
    return fail("the plan has a decision record of its own", "--record",
                "leave it out, or compile the model with it", ExitCode::usage);
  backend.record = stored.empty() ? options.record : stored;
  backend.frozen = !backend.record.empty() && !tune;
  backend.tune = tune;
  backend.slow_products = options.slow_products;
  backend.progress = [](size_t done, size_t total) {
    if (done == total) {
      progress("running");
      return true;
    }
    constexpr size_t kWidth = 30;
    const auto filled =
        static_cast<size_t>(kWidth * (static_cast<double>(done) / static_cast<double>(total)));
    progress(fmt::format(
        "weights [{}{}] {} of {}", std::string(filled, '#'), std::string(kWidth - filled, '.'),
        with_unit(static_cast<double>(done), "B"), with_unit(static_cast<double>(total), "B")));
    return true;
  };
  SINTER_LET(opened, Backend::open(backend));
  if (!opened->on_gpu() && (options.slow_products || !options.record.empty()))
    return fail(fmt::format("only a GPU's matrix products can be chosen, and the device is {}: {}",
                            opened->name(), opened->why()),
                options.slow_products ? "--slow-products" : "--record", "leave it out",
                ExitCode::device);
  detail(fmt::format("device {}: {}", opened->name(), opened->why()));
  return std::move(opened);
}

}  // namespace sinter
