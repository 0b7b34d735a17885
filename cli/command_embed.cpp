#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/commands.h"
#include "cli/input.h"
#include "cli/integer_options.h"
#include "cli/options.h"
#include "cli/output.h"
#include "driver/embed/embed.h"
#include "driver/embed/text_tokens.h"
#include "driver/embed/vector_file.h"
#include "driver/text.h"
#include "driver/text_table.h"

namespace sinter {
namespace {

struct EmbedCommand : CommandOptions {
  std::vector<std::string> texts;  // "-": standard input
  std::vector<std::string> files;
  std::vector<IntegerList<int32_t>> tokens;
  std::string pooling;
  std::optional<std::string> prompt, prompt_name;
  bool normalize = false, truncate = false;
  std::string output;
};

/// The texts of --text in their order, then the lines of the files of --text-file.
Result<std::vector<std::string>> given_texts(const EmbedCommand& options) {
  std::vector<std::string> texts;
  bool input_is_read = false;
  const auto add_lines = [&](const std::string& path) -> Status {
    if (path != "-") {
      SINTER_LET(text, read_text(path));
      append_lines(text, texts);
      return {};
    }
    if (std::exchange(input_is_read, true))
      return fail("standard input is read once", "sinter embed", "give the other texts themselves",
                  ExitCode::usage);
    SINTER_LET(text, read_input());
    SINTER_TRY(check_utf8(text, "standard input"));
    append_lines(text, texts);
    return {};
  };
  for (const std::string& text : options.texts) {
    if (text == "-")
      SINTER_TRY(add_lines(text));
    else
      texts.push_back(text);
  }
  for (const std::string& path : options.files) SINTER_TRY(add_lines(path));
  return texts;
}

/// Says how many texts were cut, and which is the first.
void note_cut(llvm::ArrayRef<size_t> cut, int64_t most) {
  if (cut.empty()) return;
  note(fmt::format("{} cut to {} tokens, the first is text {}",
                   cut.size() == 1 ? "1 text was" : fmt::format("{} texts were", cut.size()), most,
                   cut.front() + 1));
}

/// The texts as ids, with the prompt before each. Texts that are given as ids have none.
Result<TextTokens> texts_of(const EmbedCommand& options, const Pooling& pooling, int64_t most) {
  const bool has_texts = !options.texts.empty() || !options.files.empty();
  if (has_texts == !options.tokens.empty())
    return fail("give either --text and --text-file, or --tokens", "sinter embed", {},
                ExitCode::usage);
  if (!has_texts) {
    if (options.prompt || options.prompt_name)
      return fail("a prompt is for texts, and token ids are given", "sinter embed",
                  "give --text, or the prompt's ids in --tokens", ExitCode::usage);
    return TextTokens{{options.tokens.begin(), options.tokens.end()}, {}};
  }
  SINTER_LET(prompt, choose_prompt(pooling.prompts, options.prompt, options.prompt_name));
  if (!prompt.empty() && !options.prompt && !options.prompt_name)
    note(
        fmt::format("the model's default prompt \"{}\" stands before each text; --prompt \"\" "
                    "leaves it out",
                    printable(prompt)));
  SINTER_LET(texts, given_texts(options));
  if (texts.empty())
    return fail("no text was given", "standard input or --text-file", "write a text on a line");
  SINTER_LET(tokenizer, open_tokenizer(options.model));
  SINTER_LET(result, tokenize_texts(tokenizer, texts,
                                    options.truncate ? std::optional(most) : std::nullopt, prompt));
  note_cut(result.cut, most);
  return result;
}

/// Where the vectors go: lines of stdout, a .npy, or, kept for the end, JSON.
class VectorSink {
 public:
  static Result<VectorSink> create(const EmbedCommand& options, size_t texts, int64_t width) {
    VectorSink sink;
    sink.json_ = options.json;
    if (options.output.empty()) return sink;
    SINTER_LET(file, VectorFile::create(options.output, texts, width));
    sink.file_.emplace(std::move(file));
    return sink;
  }

  Status take(llvm::ArrayRef<double> vector) {
    if (file_) return file_->write(vector);
    if (json_)
      kept_.push_back(vector.vec());
    else
      print_line(vector);
    return {};
  }

  Status finish() { return file_ ? file_->commit() : Status(); }
  const std::vector<std::vector<double>>& kept() const { return kept_; }

 private:
  static void print_line(llvm::ArrayRef<double> vector) {
    std::string line;
    for (double value : vector) line += fmt::format("{}{:.9g}", line.empty() ? "" : " ", value);
    print_result(line + "\n");
  }

  bool json_ = false;
  std::optional<VectorFile> file_;
  std::vector<std::vector<double>> kept_;
};

void print_report(const EmbedCommand& options, const Pooling& pooling, const EmbedCalls& calls,
                  int64_t activation_bytes, const VectorSink& sink) {
  nlohmann::ordered_json json = {{"pooling", to_string(pooling.kind)},
                                 {"normalized", pooling.normalize},
                                 {"calls", calls.calls},
                                 {"arena_bytes", calls.arena_bytes},
                                 {"activation_bytes", activation_bytes}};
  if (options.output.empty())
    json["embeddings"] = sink.kept();
  else
    json["output"] = printable(options.output, 4096);
  print_result(json.dump(2) + "\n");
}

Status embed_command(const EmbedCommand& options) {
  if (!options.output.empty()) SINTER_TRY(VectorFile::check_name(options.output));
  SINTER_LET(request, to_request(options));
  SINTER_LET(model, open_model(request.path, request.load));
  SINTER_TRY(require_encoder(model));
  SINTER_LET(files, model_files(request.path));
  SINTER_LET(pooling, find_pooling(files));
  SINTER_LET(tokens, texts_of(options, pooling, most_tokens(*model.spec, pooling)));
  const std::vector<std::vector<int32_t>>& texts = tokens.texts;
  if (!options.pooling.empty())
    pooling.kind = options.pooling == "cls" ? PoolingKind::cls : PoolingKind::mean;
  pooling.normalize |= options.normalize;
  SINTER_LET(sink, VectorSink::create(options, texts.size(), model.spec->hidden));
  SINTER_LET(backend, open_backend(options));
  const int64_t activation_bytes = to_prefill(options).activation_bytes;
  SINTER_LET(ready, make_ready(model, request.compile, *backend));
  const EmbedOptions embedding{pooling, activation_bytes, {}, tokens.prompt_tokens};
  SINTER_LET(embedded, embed(model, ready, texts, embedding,
                             [&](llvm::ArrayRef<double> vector) { return sink.take(vector); }));
  SINTER_TRY(sink.finish());
  detail(fmt::format("{} in {}, activations take {} of {}", counted(texts.size(), "text"),
                     counted(static_cast<uint64_t>(embedded.calls), "call"),
                     with_unit(static_cast<double>(embedded.arena_bytes), "B"),
                     with_unit(static_cast<double>(activation_bytes), "B")));
  if (options.json)
    print_report(options, pooling, embedded, activation_bytes, sink);
  else if (!options.output.empty())
    print_result(fmt::format("{} of {} numbers → {}\n", counted(texts.size(), "vector"),
                             model.spec->hidden, printable(options.output, 4096)));
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
                  "a text, for the model's own tokenizer; repeat for several; -: the lines of "
                  "standard input")
      ->allow_extra_args(false);
  command
      .add_option("--text-file", options->files,
                  "a file with a text on each line; repeat for several; -: standard input")
      ->allow_extra_args(false)
      ->type_name("FILE");
  add_integer_lists(command, "--tokens", options->tokens, "ids of a text; repeat for several",
                    kTokenIds);
  command
      .add_option_function<std::string>(
          "--prompt", [options](const std::string& text) { options->prompt = text; },
          "a text that is put before each text; \"\": none; default: the model's default prompt, "
          "where its config_sentence_transformers.json has one")
      ->type_name("TEXT");
  command.add_option("--prompt-name", options->prompt_name, "a prompt of the model, by its name")
      ->type_name("NAME");
  command
      .add_option("--pooling", options->pooling,
                  "how tokens become one vector; default: as modules.json says, else mean")
      ->check(CLI::IsMember({"mean", "cls"}))
      ->type_name("mean|cls");
  command.add_flag("--normalize", options->normalize, "vectors of length 1");
  command.add_flag("--truncate", options->truncate,
                   "cut texts that have more tokens than the model takes, as "
                   "sentence-transformers does; without it they are an error");
  command
      .add_option("-o,--output", options->output,
                  "write the vectors as NumPy's .npy, float32 [texts, width], instead of lines")
      ->type_name("FILE");
  add_activation_memory(command, *options);
  add_compiling(command, *options);
  add_device(command, *options);
  add_json(command, *options);
  add_verbosity(command);
  command.callback([options, &action] { action = [options] { return embed_command(*options); }; });
}

}  // namespace sinter
