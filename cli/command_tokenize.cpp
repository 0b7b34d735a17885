#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/commands.h"
#include "cli/integer_options.h"
#include "cli/options.h"
#include "cli/output.h"
#include "driver/text.h"

namespace sinter {
namespace {

struct TokenizeCommand {
  std::string model, file;
  std::optional<std::string> text;
  std::optional<IntegerList<int32_t>> decode;
  bool no_special = false, json = false;
};

using Json = nlohmann::ordered_json;

/// Calls `row` with every id's place, its piece and what it adds to the text: nothing while a
/// character is unfinished. Long texts have millions of rows, which are not kept.
template <typename Row>
Status each_token(const Tokenizer& tokenizer, const std::vector<int32_t>& ids, const Row& row) {
  TextStream stream(tokenizer, false);
  for (size_t i = 0; i < ids.size(); ++i) {
    SINTER_LET(text, stream.push(ids[i]));
    if (i + 1 == ids.size()) {
      SINTER_LET(rest, stream.finish());
      text += rest;
    }
    row(i, tokenizer.piece(ids[i]).value_or(""), text);
  }
  return {};
}

Status print_json(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  print_result(fmt::format("{{\n  \"ids\": [{}],\n  \"tokens\": [", fmt::join(ids, ", ")));
  const auto row = [&](size_t i, const std::string& piece, const std::string& text) {
    const Json json = {{"id", ids[i]}, {"piece", piece}, {"text", text}};
    print_result(fmt::format("{}\n    {}", i > 0 ? "," : "", json.dump()));
  };
  SINTER_TRY(each_token(tokenizer, ids, row));
  print_result(ids.empty() ? "]\n}\n" : "\n  ]\n}\n");
  return {};
}

/// Characters of UTF-8 text.
size_t width(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

Status print_table(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  constexpr std::string_view kPiece = "piece";
  size_t id_width = 2, piece_width = kPiece.size();
  for (int32_t id : std::set<int32_t>(ids.begin(), ids.end())) {
    id_width = std::max(id_width, std::to_string(id).size());
    piece_width = std::max(piece_width, width(printable(tokenizer.piece(id).value_or(""))));
  }
  const size_t at_width = std::max<size_t>(2, std::to_string(ids.size()).size());
  print_result(fmt::format("{}\n{:>{}}  {:>{}}  {:<{}}  text\n", fmt::join(ids, ","), "at",
                           at_width, "id", id_width, kPiece, piece_width));
  return each_token(
      tokenizer, ids, [&](size_t i, const std::string& piece, const std::string& text) {
        const std::string shown = printable(piece);
        print_result(fmt::format("{:>{}}  {:>{}}  {}{}  \"{}\"\n", i, at_width, ids[i], id_width,
                                 shown, std::string(piece_width - width(shown), ' '),
                                 printable(text)));
      });
}

Status print_decoded(const Tokenizer& tokenizer, const TokenizeCommand& options) {
  const IntegerList<int32_t>& ids = *options.decode;
  auto text = tokenizer.decode(ids, options.no_special);
  if (!text) {
    text.error().where = "--decode";
    return tl::make_unexpected(std::move(text.error()));
  }
  print_result(options.json ? Json({{"ids", ids}, {"text", *text}}).dump() + "\n" : *text + "\n");
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
  return options.json ? print_json(tokenizer, ids) : print_table(tokenizer, ids);
}

}  // namespace

void add_tokenize(CLI::App& program, Action& action) {
  CLI::App& command =
      *program.add_subcommand("tokenize", "the token ids of a text, or the text of ids");
  auto options = std::make_shared<TokenizeCommand>();
  command
      .add_option("MODEL", options->model,
                  "folder or file beside which tokenizer.json, tokenizer.model, tokenizer.bin, "
                  "vocab.txt or vocab.json lies, one of these, or a .gguf")
      ->required();
  // The library makes no value of an empty text for an std::optional.
  command
      .add_option_function<std::string>(
          "--text", [options](const std::string& text) { options->text = text; }, "a text")
      ->type_name("TEXT");
  command.add_option("--file", options->file, "a file with the text")->type_name("FILE");
  add_integers(command, "--decode", options->decode, "ids, to be turned into text", kTokenIds);
  command.add_flag(
      "--no-special-tokens", options->no_special,
      "add none around the text, show none when decoding; those that a text spells are recognized");
  command.add_flag("--json", options->json, "the result as JSON");
  add_verbosity(command);
  command.callback(
      [options, &action] { action = [options] { return tokenize_command(*options); }; });
}

}  // namespace sinter
