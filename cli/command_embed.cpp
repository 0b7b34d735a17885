#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/integer_options.h"
#include "cli/options.h"
#include "cli/output.h"
#include "driver/embed/embed.h"
#include "driver/text.h"
#include "driver/text_table.h"

namespace sinter {
namespace {

struct EmbedCommand : CommandOptions {
  std::vector<std::string> texts;
  std::vector<IntegerList<int32_t>> tokens;
  std::string pooling;
  bool normalize = false;
};

Result<std::vector<std::vector<int32_t>>> texts_of(const EmbedCommand& options) {
  if (options.texts.empty() == options.tokens.empty())
    return fail("give either --text or --tokens", "sinter embed", {}, ExitCode::usage);
  std::vector<std::vector<int32_t>> texts = options.tokens;
  for (const std::string& text : options.texts) {
    SINTER_LET(ids, tokenize(options.model, text));
    texts.push_back(std::move(ids));
  }
  return texts;
}

Status embed_command(const EmbedCommand& options) {
  SINTER_LET(request, to_request(options));
  SINTER_LET(model, open_model(request.path, request.load));
  SINTER_LET(texts, texts_of(options));
  SINTER_LET(files, model_files(request.path));
  SINTER_LET(pooling, find_pooling(files));
  if (!options.pooling.empty())
    pooling.kind = options.pooling == "cls" ? PoolingKind::cls : PoolingKind::mean;
  pooling.normalize |= options.normalize;
  SINTER_LET(backend, open_backend(options));
  const int64_t activation_bytes = to_prefill(options).activation_bytes;
  SINTER_LET(embedded, embed(model, texts, {backend, request.compile, pooling, activation_bytes}));
  detail(fmt::format("{} in {}, activations take {} of {}", counted(texts.size(), "text"),
                     counted(static_cast<uint64_t>(embedded.calls), "call"),
                     with_unit(static_cast<double>(embedded.arena_bytes), "B"),
                     with_unit(static_cast<double>(activation_bytes), "B")));
  if (options.json) {
    const nlohmann::ordered_json json = {{"pooling", to_string(pooling.kind)},
                                         {"normalized", pooling.normalize},
                                         {"calls", embedded.calls},
                                         {"arena_bytes", embedded.arena_bytes},
                                         {"activation_bytes", activation_bytes},
                                         {"embeddings", embedded.vectors}};
    print_result(json.dump(2) + "\n");
    return {};
  }
  for (const auto& vector : embedded.vectors) {
    std::string line;
    for (double value : vector) line += fmt::format("{}{:.9g}", line.empty() ? "" : " ", value);
    print_result(line + "\n");
  }
  return {};
}

}  // namespace

void add_embed(CLI::App& program, Action& action) {
  CLI::App& command =
      *program.add_subcommand("embed", "vectors of texts, by an encoder; a line each");
  auto options = std::make_shared<EmbedCommand>();
  add_model(command, *options);
  add_recompile(command, *options);
  command
      .add_option("--text", options->texts,
                  "a text, for the model's own tokenizer; repeat for several")
      ->allow_extra_args(false);
  add_integer_lists(command, "--tokens", options->tokens, "ids of a text; repeat for several",
                    kTokenIds);
  command
      .add_option("--pooling", options->pooling,
                  "how tokens become one vector; default: as modules.json says, else mean")
      ->check(CLI::IsMember({"mean", "cls"}))
      ->type_name("mean|cls");
  command.add_flag("--normalize", options->normalize, "vectors of length 1");
  add_activation_memory(command, *options);
  add_compiling(command, *options);
  add_device(command, *options);
  add_json(command, *options);
  add_verbosity(command);
  command.callback([options, &action] { action = [options] { return embed_command(*options); }; });
}

}  // namespace sinter
