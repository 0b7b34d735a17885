#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "driver/text.h"
#include "driver/text_table.h"

namespace sinter {
namespace {

struct TokenizeCommand {
  std::string model, file;
  std::optional<std::string> text, decode;
  bool no_special = false, json = false;
};

using Json = nlohmann::ordered_json;

std::string dumped(const Json& json) { return json.dump(2) + "\n"; }

/// What each id adds to the text; nothing while a character is unfinished.
Result<std::vector<std::string>> text_parts(const Tokenizer& tokenizer,
                                            const std::vector<int32_t>& ids) {
  TextStream stream(tokenizer, false);
  std::vector<std::string> parts;
  for (int32_t id : ids) {
    SINTER_LET(part, stream.push(id));
    parts.push_back(std::move(part));
  }
  SINTER_LET(rest, stream.finish());
  if (!parts.empty()) parts.back() += rest;
  return parts;
}

Status print_tokens(const Tokenizer& tokenizer, const std::vector<int32_t>& ids, bool as_json) {
  SINTER_LET(parts, text_parts(tokenizer, ids));
  Json rows = Json::array();
  TextTable table("rrll");
  table.add({"at", "id", "piece", "text"});
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::string piece = tokenizer.piece(ids[i]).value_or("");
    if (as_json)
      rows.push_back({{"id", ids[i]}, {"piece", piece}, {"text", parts[i]}});
    else
      table.add({fmt::format("{}", i), fmt::format("{}", ids[i]), printable(piece),
                 fmt::format("\"{}\"", printable(parts[i]))});
  }
  if (as_json)
    print_result(dumped({{"ids", ids}, {"tokens", std::move(rows)}}));
  else
    print_result(fmt::format("{}\n{}", fmt::join(ids, ","), table.str()));
  return {};
}

Status print_decoded(const Tokenizer& tokenizer, const TokenizeCommand& options) {
  SINTER_LET(ids, parse_tokens(*options.decode, "--decode"));
  auto text = tokenizer.decode(ids, options.no_special);
  if (!text) {
    text.error().where = "--decode";
    return tl::make_unexpected(std::move(text.error()));
  }
  print_result(options.json ? dumped({{"ids", ids}, {"text", *text}}) : *text + "\n");
  return {};
}

Status tokenize_command(const TokenizeCommand& options) {
  if (options.text.has_value() + options.decode.has_value() + !options.file.empty() != 1)
    return fail("give one of --text, --file and --decode", "sinter tokenize", {}, ExitCode::usage);
  SINTER_LET(tokenizer, open_tokenizer(options.model));
  if (options.decode) return print_decoded(tokenizer, options);
  std::string text = options.text.value_or("");
  if (options.text) SINTER_TRY(check_utf8(text, "--text"));
  if (!options.text) {
    SINTER_LET(content, read_text(options.file));
    text = std::move(content);
  }
  SINTER_LET(ids, tokenizer.encode(text, !options.no_special));
  return print_tokens(tokenizer, ids, options.json);
}

}  // namespace

void add_tokenize(CLI::App& program, Action& action) {
  CLI::App& command =
      *program.add_subcommand("tokenize", "the token ids of a text, or the text of ids");
  auto options = std::make_shared<TokenizeCommand>();
  command
      .add_option("MODEL", options->model,
                  "folder or file beside which tokenizer.json, tokenizer.model or tokenizer.bin "
                  "lies, or one of these")
      ->required();
  command.add_option("--text", options->text, "a text")->type_name("TEXT");
  command.add_option("--file", options->file, "a file with the text")->type_name("FILE");
  command.add_option("--decode", options->decode, "ids, to be turned into text")
      ->type_name("1,2,3");
  command.add_flag(
      "--no-special-tokens", options->no_special,
      "add none around the text, show none when decoding; those that a text spells are recognized");
  command.add_flag("--json", options->json, "the result as JSON");
  add_verbosity(command);
  command.callback(
      [options, &action] { action = [options] { return tokenize_command(*options); }; });
}

}  // namespace sinter
