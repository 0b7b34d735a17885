#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/conversation.h"
#include "cli/input.h"
#include "cli/integer_options.h"
#include "cli/many_prompts.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/text_printer.h"
#include "driver/generate/chat.h"
#include "driver/generate/generate.h"
#include "driver/generate/prefill_report.h"
#include "driver/text.h"
#include "driver/text_table.h"

namespace sinter {
namespace {

struct GenerateCommand : CommandOptions {
  std::vector<IntegerList<int32_t>> tokens;
  std::vector<std::string> prompts;  // "-": standard input
  std::vector<std::string> prompt_files;
  std::string prompts_file, prompt_ids_file;  // a prompt a line
  int64_t places = kMaxSequences;
  int64_t count = 64;
  std::vector<std::string> end_tokens;
  bool greedy = false, ignore_eos = false, chat = false, rendered_chat = false;
  std::string chat_template;
  std::optional<std::string> system;
  SamplingOptions sampling;

  bool chats() const { return chat || !chat_template.empty(); }
  /// Messages come from standard input, one after the other.
  bool converses() const {
    return chats() && !rendered_chat && prompts.empty() && tokens.empty() && prompts_file.empty() &&
           prompt_ids_file.empty();
  }
};

Result<Sampling> sampling_of(const GenerateCommand& options) {
  const SamplingOptions& given = options.sampling;
  const char* const draws = given.temperature > 0 ? "temperature" : given.of_draws();
  if (options.greedy && draws)
    return fail(fmt::format("--greedy and --{} exclude each other", draws), "sinter generate", {},
                ExitCode::usage);
  SINTER_LET(sampling, to_sampling(given));
  if (draws && !given.temperature)
    note(fmt::format("--{} without --temperature: tokens are drawn at temperature 1", draws));
  else if (draws && sampling.temperature == 0)
    note(fmt::format("temperature 0 takes the likeliest token: --{} changes nothing", draws));
  return sampling;
}

struct Prompts {
  std::vector<std::vector<int32_t>> ids;
  std::vector<int32_t> ends;  // end tokens beside the model's own
  bool shown = true;          // the prompt's text stands before its continuation
};

/// The continuation of each prompt, as text.
Result<std::vector<std::string>> continuations(const Tokenizer& tokenizer, const Prompts& prompts,
                                               const Generation& generation) {
  std::vector<std::string> texts;
  for (size_t s = 0; s < prompts.ids.size(); ++s) {
    SINTER_LET(text, continuation_text(tokenizer, prompts.ids[s], generation.tokens[s]));
    texts.push_back(std::move(text));
  }
  return texts;
}

/// "text" is there where the model has a tokenizer.
Result<std::string> generation_json(const Generation& generation, const Prompts& prompts,
                                    const std::optional<Tokenizer>& tokenizer) {
  nlohmann::ordered_json json = {{"tokens", generation.tokens}};
  if (tokenizer) {
    SINTER_LET(texts, continuations(*tokenizer, prompts, generation));
    json["text"] = texts;
  }
  json["prompt_tokens"] = generation.prompt_tokens;
  json["prefill"] = prefill_json(generation.prefill);
  json["ttft_s"] = generation.first_s;
  json["tpot_s"] = generation.per_token_s;
  return json.dump(2) + "\n";
}

/// "tiny-llama on cpu, which is for checking: 4 prompt tokens, first token after 2.68 ms, then 0.91
/// ms a token, 1100 tokens/s"; without a rate below three steps.
std::string times_text(const std::string& model, const Backend& backend,
                       const Generation& generation, size_t sequences) {
  std::string text =
      fmt::format("{} on {}{}: {}, first token after {:.2f} ms", model, backend.name(),
                  backend.on_gpu() ? "" : ", which is for checking",
                  counted(static_cast<uint64_t>(generation.prompt_tokens), "prompt token"),
                  generation.first_s * 1e3);
  if (generation.per_token_s > 0)
    text += fmt::format(", then {:.3f} ms a token, {:.1f} tokens/s", generation.per_token_s * 1e3,
                        static_cast<double>(sequences) / generation.per_token_s);
  return text;
}

Result<ChatFormat> chat_format(const GenerateCommand& options) {
  SINTER_LET(files, model_files(options.model));
  return read_chat_format(files, options.chat_template);
}

Result<Prompts> chat_prompts(const GenerateCommand& options, const Tokenizer& tokenizer) {
  SINTER_LET(format, chat_format(options));
  Prompts prompts;
  prompts.shown = false;
  for (const std::string& message : options.prompts) {
    SINTER_LET(text, first_message(format, options.system, message, options.model));
    SINTER_LET(prompt, encode_chat(tokenizer, format, text));
    if (prompt.end) prompts.ends.assign(1, *prompt.end);
    if (!prompt.as_text.empty() && prompts.ids.empty()) note(marks_as_text(format, prompt));
    prompts.ids.push_back(std::move(prompt.ids));
  }
  return prompts;
}

Result<Prompts> prompts_of(const GenerateCommand& options,
                           const std::optional<Tokenizer>& tokenizer) {
  const bool chat = options.chats();
  if (options.tokens.empty() == options.prompts.empty())
    return fail("give either --prompt or --tokens", "sinter generate",
                "--chat alone is a conversation", ExitCode::usage);
  if (options.system && !chat)
    return fail("only a chat has a system message", "--system", "add --chat", ExitCode::usage);
  if (chat && options.rendered_chat)
    return fail("--chat and --rendered-chat exclude each other", "sinter generate", {},
                ExitCode::usage);
  if ((chat || options.rendered_chat) && options.prompts.empty())
    return fail("a chat takes texts", "--tokens", "give --prompt", ExitCode::usage);
  Prompts prompts;
  prompts.ids = options.tokens;
  if (options.prompts.empty()) return prompts;
  if (options.system) SINTER_TRY(check_utf8(*options.system, "--system"));
  for (const std::string& text : options.prompts) SINTER_TRY(check_utf8(text, "--prompt"));
  if (!tokenizer) return tl::make_unexpected(open_tokenizer(options.model).error());
  if (chat) return chat_prompts(options, *tokenizer);
  prompts.shown = !options.rendered_chat;
  for (const std::string& text : options.prompts) {
    // A template writes the special tokens at a text's beginning itself.
    SINTER_LET(ids, tokenizer->encode(text, !options.rendered_chat));
    prompts.ids.push_back(std::move(ids));
  }
  return prompts;
}

/// The ids of --end-token; each is one token of the tokenizer.
Result<std::vector<int32_t>> end_tokens_of(const GenerateCommand& options,
                                           const std::optional<Tokenizer>& tokenizer) {
  std::vector<int32_t> ids;
  for (const std::string& text : options.end_tokens) {
    const std::optional<int32_t> id = tokenizer ? tokenizer->token_id(text) : std::nullopt;
    if (!id)
      return fail(fmt::format("the tokenizer has no token \"{}\"", printable(text, 60)),
                  "--end-token", {}, ExitCode::usage);
    ids.push_back(*id);
  }
  return ids;
}

/// The lines of a file, or of standard input.
Result<std::vector<std::string>> lines_of(const std::string& path) {
  std::vector<std::string> lines;
  SINTER_LET(text, path == "-" ? read_input() : read_text(path));
  SINTER_TRY(check_utf8(text, path == "-" ? "standard input" : path));
  append_lines(text, lines);
  if (lines.empty())
    return fail("no line", path == "-" ? "standard input" : path, "write a prompt on a line");
  return lines;
}

/// The prompts of --prompts or --prompt-ids, a line each.
Result<std::vector<std::vector<int32_t>>> prompts_of_lines(
    const GenerateCommand& options, const std::optional<Tokenizer>& tokenizer) {
  const bool of_ids = !options.prompt_ids_file.empty();
  const std::string& path = of_ids ? options.prompt_ids_file : options.prompts_file;
  if (!of_ids && !tokenizer) return tl::make_unexpected(open_tokenizer(options.model).error());
  SINTER_LET(lines, lines_of(path));
  std::vector<std::vector<int32_t>> prompts;
  for (size_t i = 0; i < lines.size(); ++i) {
    auto ids = of_ids ? parse_integers<int32_t>(lines[i], fmt::format("{}:{}", path, i + 1),
                                                kTokenIds, ExitCode::bad_input)
                      : tokenizer->encode(lines[i], true);
    if (!ids) return tl::make_unexpected(std::move(ids.error()));
    if (ids->empty())
      return fail("a prompt has no tokens", fmt::format("{}:{}", path, i + 1), "write a text");
    prompts.push_back(std::move(*ids));
  }
  return prompts;
}

/// Reads the prompts that stand elsewhere; the newline that ends a file or a line of a shell is no
/// part of them.
Status read_prompts(GenerateCommand& options) {
  const auto without_newline = [](std::string text) {
    if (text.ends_with('\n')) text.pop_back();
    if (text.ends_with('\r')) text.pop_back();
    return text;
  };
  size_t inputs = 0;
  for (std::string& prompt : options.prompts) {
    if (prompt != "-") continue;
    if (++inputs > 1)
      return fail("standard input is read once", "--prompt -", "give the other texts themselves",
                  ExitCode::usage);
    SINTER_LET(text, read_input());
    prompt = without_newline(std::move(text));
  }
  for (const std::string& path : options.prompt_files) {
    SINTER_LET(text, read_text(path));
    options.prompts.push_back(without_newline(std::move(text)));
  }
  return {};
}

void note_unapplied(const Model& model) {
  if (!model.unapplied.empty())
    note(fmt::format("the folder's settings for generating text are not applied: {}",
                     fmt::join(model.unapplied, ", ")));
}

/// A line for people who wait for the CPU: what it is for, and its rate where that is low.
void note_cpu(const Model& model, const Backend& backend) {
  constexpr double kParametersPerSecond = 3e8;  // two cores take 4.2 s a token of Llama-3.2-1B
  constexpr double kSlow = 0.1;
  double parameters = 0;
  for (const Weight& weight : model.module.weights) {
    double elements = 1;
    for (const Dim& dim : weight.type.dims) elements *= static_cast<double>(dim.constant());
    parameters += elements;
  }
  const double seconds = parameters / kParametersPerSecond;
  if (backend.on_gpu() || seconds < kSlow) return;
  note(fmt::format("on the CPU, which is for checking: some {:.1g} s a token on two cores",
                   seconds));
}

/// Prompts of a file, through places that sequences leave to others.
Status generate_from_file(const GenerateCommand& options) {
  if (!options.tokens.empty() || !options.prompts.empty() || options.chats() ||
      options.rendered_chat || !options.kv.empty() ||
      (!options.prompts_file.empty() && !options.prompt_ids_file.empty()))
    return fail(
        "--prompts and --prompt-ids stand alone: without --prompt, --tokens, --chat and --kv",
        "sinter generate", {}, ExitCode::usage);
  SINTER_LET(sampling, sampling_of(options));
  SINTER_LET(request, to_request(options));
  SINTER_LET(tokenizer, find_tokenizer(options.model));
  SINTER_LET(prompts, prompts_of_lines(options, tokenizer));
  SINTER_LET(ends, end_tokens_of(options, tokenizer));
  for (const auto& prompt : prompts)
    request.load.context =
        std::max(request.load.context, text_tokens(prompt.size(), options.count));
  const int64_t places = std::min(options.places, static_cast<int64_t>(prompts.size()));
  request.load.sequences = std::max(places, kUsualSequences);
  SINTER_LET(backend, open_backend(options));
  SINTER_LET(model, open_model(request.path, request.load));
  SINTER_TRY(check_prompts(model, prompts, options.count));
  note_cpu(model, *backend);
  SINTER_LET(ready, make_ready(model, request.compile, *backend));
  ManyOptions many;
  many.count = options.count;
  many.places = places;
  many.stop_at_eos = !options.ignore_eos;
  many.ends = ends;
  many.sampling = sampling;
  many.prefill = to_prefill(options);
  return print_continuations(model, ready, prompts, tokenizer, std::move(many), backend->name());
}

GenerateOptions generating_of(const GenerateCommand& options, std::shared_ptr<Backend> backend,
                              const BuildRequest& request, const Sampling& sampling) {
  GenerateOptions generating;
  generating.backend = std::move(backend);
  generating.compile = request.compile;
  generating.count = options.count;
  generating.stop_at_eos = !options.ignore_eos;
  generating.sampling = sampling;
  generating.prefill = to_prefill(options);
  return generating;
}

Status converse_command(const GenerateCommand& options) {
  if (options.json)
    return fail("a conversation is printed as text", "--json", "give a message with --prompt",
                ExitCode::usage);
  if (options.system) SINTER_TRY(check_utf8(*options.system, "--system"));
  SINTER_LET(sampling, sampling_of(options));
  SINTER_LET(request, to_request(options));
  SINTER_LET(tokenizer, open_tokenizer(options.model));
  Conversation conversation;
  conversation.where = options.model;
  conversation.system = options.system;
  SINTER_LET(format, chat_format(options));
  conversation.format = format;
  SINTER_TRY(check_conversation(conversation));
  SINTER_TRY(first_message(format, options.system, {}, options.model));
  SINTER_LET(ends, end_tokens_of(options, tokenizer));
  SINTER_LET(backend, open_backend(options));
  SINTER_LET(model, open_model(request.path, request.load));
  SINTER_TRY(check_tokens(model, {}));
  note_unapplied(model);
  conversation.generating = generating_of(options, backend, request, sampling);
  conversation.generating.ends = std::move(ends);
  SINTER_LET(ready, make_ready(model, request.compile, *backend));
  note_cpu(model, *backend);
  return converse(model, ready, tokenizer, conversation);
}

Status generate_command(GenerateCommand options) {
  SINTER_TRY(read_prompts(options));
  if (options.count < 1)
    return fail(fmt::format("{} tokens to add", options.count), "-n", "give 1 or more",
                ExitCode::usage);
  if (!options.prompts_file.empty() || !options.prompt_ids_file.empty())
    return generate_from_file(options);
  if (options.converses()) return converse_command(options);
  SINTER_LET(sampling, sampling_of(options));
  SINTER_LET(request, to_request(options));
  SINTER_LET(tokenizer, find_tokenizer(options.model));
  SINTER_LET(prompts, prompts_of(options, tokenizer));
  SINTER_LET(end_tokens, end_tokens_of(options, tokenizer));
  if (options.ignore_eos) prompts.ends.clear();  // the chat format's
  prompts.ends.insert(prompts.ends.end(), end_tokens.begin(), end_tokens.end());
  SINTER_LET(backend, open_backend(options));
  for (const auto& prompt : prompts.ids)
    request.load.context =
        std::max(request.load.context, text_tokens(prompt.size(), options.count));
  request.load.sequences = std::max(static_cast<int64_t>(prompts.ids.size()), kUsualSequences);
  SINTER_LET(model, open_model(request.path, request.load));
  if (const std::string text = context_note(model, request.load.context); !text.empty()) note(text);
  note_unapplied(model);
  note_cpu(model, *backend);
  GenerateOptions generating = generating_of(options, backend, request, sampling);
  generating.ends = prompts.ends;
  generating.prefill.progress = [](int64_t done, int64_t total) {
    if (done < total) progress(fmt::format("{} of {} prompt tokens", done, total));
    return true;
  };
  // One text is printed as it grows, several one after the other.
  const bool as_text = tokenizer && !options.json;
  std::optional<TextPrinter> growing;
  Status printed = {};
  if (as_text && prompts.ids.size() == 1)
    generating.on_token = [&](size_t, int32_t token) {
      if (!printed) return false;
      if (!growing) {
        auto started = TextPrinter::start(*tokenizer, prompts.ids[0], prompts.shown);
        if (!started)
          printed = tl::make_unexpected(started.error());
        else
          growing.emplace(std::move(*started));
      }
      if (printed) printed = growing->print(token);
      return printed.has_value();
    };
  SINTER_LET(generation, generate(model, prompts.ids, generating));
  SINTER_TRY(printed);
  detail("prompts: " + prefill_text(generation.prefill));
  if (options.json) {
    SINTER_LET(json, generation_json(generation, prompts, tokenizer));
    print_result(json);
  } else if (growing) {
    SINTER_TRY(growing->finish());
  } else if (as_text) {
    for (size_t s = 0; s < prompts.ids.size(); ++s) {
      SINTER_LET(printer, TextPrinter::start(*tokenizer, prompts.ids[s], prompts.shown));
      for (int32_t token : generation.tokens[s]) SINTER_TRY(printer.print(token));
      SINTER_TRY(printer.finish());
    }
  } else {
    for (const auto& tokens : generation.tokens)
      print_result(fmt::format("{}\n", fmt::join(tokens, " ")));
  }
  note(times_text(model.module.name, *backend, generation, prompts.ids.size()));
  return {};
}

}  // namespace

void add_generate(CLI::App& program, Action& action) {
  CLI::App& command = *program.add_subcommand("generate", "continue a text");
  auto options = std::make_shared<GenerateCommand>();
  add_model(command, *options);
  add_recompile(command, *options);
  add_integer_lists(command, "--tokens", options->tokens,
                    "ids of a prompt; repeat for a batch of sequences", kTokenIds);
  command
      .add_option(
          "--prompt", options->prompts,
          "a text, for the model's own tokenizer, - reads it from stdin; repeat for a batch")
      ->type_name("TEXT|-")
      ->allow_extra_args(false);
  command
      .add_option("--prompt-file", options->prompt_files,
                  "a file with a text; the newline at its end is no part of it")
      ->type_name("FILE")
      ->allow_extra_args(false);
  command
      .add_option("--prompts", options->prompts_file,
                  "a file with a prompt a line, - reads stdin; prints a JSON object a line")
      ->type_name("FILE|-");
  command
      .add_option("--prompt-ids", options->prompt_ids_file,
                  "the same with the ids of a prompt's tokens, 1,2,3, a line")
      ->type_name("FILE|-");
  add_integer(
      command, "--places", options->places,
      "sequences of --prompts that decode together, at most; one that ends makes room; with "
      "more than 8, on a GPU with more than 1, texts may differ by roundings",
      IntegerRange<int64_t>{.least = 1, .most = kMaxSequences})
      ->capture_default_str();
  command.add_flag("--chat", options->chat,
                   "each text is a message, in the model's chat template; the answer is printed; "
                   "without a text, a conversation: messages are lines of stdin, Ctrl-C ends an "
                   "answer");
  command
      .add_option("--chat-template", options->chat_template,
                  "the template, where the model's folder does not tell: " + chat_template_names())
      ->type_name("NAME");
  command.add_option("--system", options->system, "system message of a chat")->type_name("TEXT");
  command.add_flag("--rendered-chat", options->rendered_chat,
                   "each text is a conversation as a chat template writes it, special tokens "
                   "included; the answer is printed");
  command
      .add_option("--end-token", options->end_tokens,
                  "a token that ends the text, beside the model's own; repeatable")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  add_integer(command, "-n", options->count, "tokens to add")->capture_default_str();
  command.add_flag("--greedy", options->greedy, "always the likeliest token (the default)");
  command.add_option("--temperature", options->sampling.temperature,
                     "above 0: draw, from softmax(logits / T); default: 1 with --top-k, --top-p or "
                     "--seed, else 0");
  add_integer(command, "--top-k", options->sampling.top_k, "draw from the K likeliest",
              IntegerRange<int32_t>{.least = 0});
  command.add_option("--top-p", options->sampling.top_p,
                     "draw from the likeliest whose probabilities reach P");
  add_integer(command, "--seed", options->sampling.seed, "of the draws; default: 0");
  command.add_flag("--ignore-eos", options->ignore_eos, "go on after an end token of the model");
  add_streaming(command, *options);
  add_prefill(command, *options);
  add_compiling(command, *options);
  add_device(command, *options);
  add_json(command, *options);
  add_verbosity(command);
  command.callback(
      [options, &action] { action = [options] { return generate_command(*options); }; });
}

}  // namespace sinter
