#include <CLI/CLI.hpp>
#include <filesystem>
#include <limits>

#include "cli/commands.h"
#include "cli/integer_options.h"
#include "cli/options.h"
#include "cli/output.h"
#include "driver/inspect/gguf_report.h"
#include "driver/inspect/inspect.h"

namespace sinter {
namespace {

struct InspectCommand : CommandOptions {
  std::optional<AskedPrompts> prompts;
};

bool is_gguf(const std::string& path) {
  std::error_code error;
  return std::filesystem::path(path).extension() == ".gguf" &&
         std::filesystem::is_regular_file(path, error);
}

Status inspect_gguf(const InspectCommand& options) {
  SINTER_LET(file, GgufFile::open(options.model));
  print_result(options.json ? gguf_json(file) : gguf_text(file));
  return {};
}

Status inspect_model(const InspectCommand& options) {
  if (is_gguf(options.model)) return inspect_gguf(options);
  SINTER_LET(request, to_request(options));
  request.load.context = std::numeric_limits<int64_t>::max();  // of all that the model can take
  SINTER_LET(model, open_model(request.path, request.load));
  InspectOptions asked;
  asked.device = request.compile.target;
  asked.sizes = request.compile.sizes;
  asked.prefill = to_prefill(options);
  asked.prompts = options.prompts;
  if (!options.prompts && (options.activation_bytes || options.prefill_chunk))
    return fail("no prompts are fed",
                options.prefill_chunk ? "--prefill-chunk" : "--activation-memory",
                "add --prompts COUNTxTOKENS", ExitCode::usage);
  SINTER_LET(inspection, inspect(model, asked));
  print_result(options.json ? inspection_json(inspection) : inspection_text(inspection));
  return {};
}

}  // namespace

void add_inspect(CLI::App& program, Action& action) {
  CLI::App& command = *program.add_subcommand("inspect",
                                              "what a model is and what limits its parts on a "
                                              "device; what a .gguf file holds; reads no weights");
  auto options = std::make_shared<InspectCommand>();
  add_model(command, *options);
  add_recompile(command, *options);
  command.add_option("--arch", options->archs, "the device")
      ->type_name("NAME")
      ->expected(1)
      ->default_str(CompileOptions().target);
  add_sizes(command, *options);
  command
      .add_option_function<std::string>(
          "--prompts",
          [options = options.get()](const std::string& text) {
            options->prompts = option_value(parse_prompts(text, "--prompts"));
          },
          "prompts whose memory is stated: weights, caches and activations")
      ->type_name("COUNTxTOKENS");
  add_prefill(command, *options);
  add_json(command, *options);
  add_verbosity(command);
  command.callback([options, &action] { action = [options] { return inspect_model(*options); }; });
}

}  // namespace sinter
