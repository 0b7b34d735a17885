#include "cli/options.h"

#include <CLI/CLI.hpp>

#include "cli/output.h"

namespace sinter {
namespace {

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

}  // namespace

void add_model(CLI::App& command, CommandOptions& options) {
  command
      .add_option("MODEL", options.model,
                  "Hugging Face folder, llama2.c .bin, spec .json or module .sir")
      ->required();
  command
      .add_option("--dtype", options.dtype,
                  "compute in fp32, fp16 or bf16; default: the model's own")
      ->type_name("TYPE");
  command
      .add_option("--random-weights", options.random_weights,
                  "stand-in weights made from a seed; the model's own stay unread")
      ->type_name("SEED");
}

void add_compiling(CLI::App& command, CommandOptions& options) {
  command
      .add_option("--arch", options.archs, "compile for this device; `sinter devices` lists them")
      ->type_name("NAME")
      ->default_str(options.archs.front())
      ->allow_extra_args(false)
      ->delimiter(',');
  command.add_option("--numerics", options.numerics, "strict: fused = unfused, bit for bit")
      ->type_name("strict|fast")
      ->capture_default_str();
  command.add_flag("--no-fuse", options.no_fuse, "a kernel for every op");
  command
      .add_option("--require", options.required, "two values that must share a kernel; repeatable")
      ->type_name("A,B")
      ->allow_extra_args(false);
  command.add_option("--forbid", options.forbidden, "two values that must not; repeatable")
      ->type_name("A,B")
      ->allow_extra_args(false);
  command.add_option("--stop-after", options.stop_after, "make the first K fusions only")
      ->check(CLI::NonNegativeNumber)
      ->option_text("K");
}

void add_phase(CLI::App& command, CommandOptions& options) {
  command.add_option("--phase", options.phase, "only this entry of the model")
      ->type_name("prefill|decode");
}

void add_device(CLI::App& command, CommandOptions& options) {
  command.add_option("--device", options.device, "where to run")
      ->type_name("auto|cpu|cuda[:N]")
      ->capture_default_str();
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

Result<BuildRequest> to_request(const CommandOptions& options) {
  BuildRequest request;
  request.path = options.model;
  if (!options.dtype.empty()) {
    SINTER_LET(dtype, parse_dtype_option(options.dtype));
    request.load.dtype = dtype;
  }
  request.load.random_weights = options.random_weights;
  if (options.numerics == "fast")
    return fail("fast numerics are not there yet", "--numerics", "strict is", ExitCode::usage);
  if (options.numerics != "strict")
    return fail(fmt::format("no such mode: \"{}\"", printable(options.numerics)), "--numerics",
                "give strict", ExitCode::usage);
  if (!options.archs.empty()) request.compile.target = options.archs.front();
  if (!options.phase.empty()) request.compile.entries = {options.phase};
  FusionOptions& fusion = request.compile.fusion;
  fusion.enabled = !options.no_fuse;
  fusion.stop_after = options.stop_after;
  SINTER_TRY(add_pairs(options.required, "--require", fusion.required));
  SINTER_TRY(add_pairs(options.forbidden, "--forbid", fusion.forbidden));
  return request;
}

Status check_device(const CommandOptions& options) {
  const std::string& device = options.device;
  if (device == "auto" || device == "cpu") return {};
  const bool numbered = device.starts_with("cuda:") && device.size() > 5 && device.size() < 10 &&
                        device.find_first_not_of("0123456789", 5) == std::string::npos;
  if (device != "cuda" && !numbered)
    return fail(fmt::format("no such device: \"{}\"", printable(device)), "--device",
                "give auto, cpu, cuda or cuda:N", ExitCode::usage);
  return fail("this build runs plans on the CPU", "--device", "give auto or cpu", ExitCode::device);
}

}  // namespace sinter
