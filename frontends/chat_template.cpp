#include "frontends/chat_template.h"

#include <filesystem>

#include "frontends/files/bounded_file.h"
#include "frontends/files/json.h"
#include "frontends/gguf/gguf_path.h"
#include "frontends/gguf/gguf_tokenizer.h"
#include "frontends/tokenizer/folder_tokens.h"
#include "frontends/tokenizer/unicode.h"

namespace sinter {
namespace {

constexpr uint64_t max_template_bytes = 1 << 20;

constexpr ChatTemplate table[] = {
    {"chatml",
     "<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\n{user}<|im_end|>\n"
     "<|im_start|>assistant\n",
     "<|im_start|>user\n{user}<|im_end|>\n<|im_start|>assistant\n",
     "{answer}<|im_end|>\n<|im_start|>user\n{user}<|im_end|>\n<|im_start|>assistant\n", false,
     "<|im_end|>", "<|im_start|> <|im_end|>"},
    {"llama2", "[INST] <<SYS>>\n{system}\n<</SYS>>\n\n{user|trim_end} [/INST]",
     "[INST] {user|trim} [/INST]", " {answer|trim} {eos}{bos}[INST] {user|trim} [/INST]", true,
     "{eos}", ""},
    {"llama3",
     "<|start_header_id|>system<|end_header_id|>\n\n{system|trim}<|eot_id|>"
     "<|start_header_id|>user<|end_header_id|>\n\n{user|trim}<|eot_id|>"
     "<|start_header_id|>assistant<|end_header_id|>\n\n",
     "<|start_header_id|>user<|end_header_id|>\n\n{user|trim}<|eot_id|>"
     "<|start_header_id|>assistant<|end_header_id|>\n\n",
     "{answer|trim}<|eot_id|><|start_header_id|>user<|end_header_id|>\n\n{user|trim}<|eot_id|>"
     "<|start_header_id|>assistant<|end_header_id|>\n\n",
     true, "<|eot_id|>", "<|start_header_id|> <|end_header_id|> <|eot_id|>"},
    {"gemma",
     "<start_of_turn>user\n{system|trim}\n\n{user|trim}<end_of_turn>\n<start_of_turn>model\n",
     "<start_of_turn>user\n{user|trim}<end_of_turn>\n<start_of_turn>model\n",
     "{answer|trim}<end_of_turn>\n<start_of_turn>user\n{user|trim}<end_of_turn>\n"
     "<start_of_turn>model\n",
     true, "<end_of_turn>", "<start_of_turn> <end_of_turn>"},
    {"phi3", "<|system|>\n{system}<|end|>\n<|user|>\n{user}<|end|>\n<|assistant|>\n",
     "<|user|>\n{user}<|end|>\n<|assistant|>\n",
     "{answer}<|end|>\n<|user|>\n{user}<|end|>\n<|assistant|>\n", false, "<|end|>",
     "<|user|> <|end|> <|assistant|>"},
    {"zephyr", "<|system|>\n{system}{eos}\n<|user|>\n{user}{eos}\n<|assistant|>\n",
     "<|user|>\n{user}{eos}\n<|assistant|>\n",
     "{answer}{eos}\n<|user|>\n{user}{eos}\n<|assistant|>\n", false, "{eos}", "{eos}"},
    {"mistral",
     "[INST] {system}\n\n{user} [/INST]",
     "[INST] {user} [/INST]",
     {},
     true,
     "{eos}",
     ""},
    {"mistral-v3",
     "[INST] {system}\n\n{user}[/INST]",
     "[INST] {user}[/INST]",
     {},
     true,
     "{eos}",
     "[INST] [/INST]"},
    {"mistral-tekken",
     "[INST]{system}\n\n{user}[/INST]",
     "[INST]{user}[/INST]",
     {},
     true,
     "{eos}",
     "[INST] [/INST]"},
};

/// How a Jinja template shows its format: both marks stand in it (the second may be empty), and
/// `absent` does not. The first row that fits counts.
struct Sign {
  std::string_view name, mark, other_mark, absent;
};
constexpr Sign signs[] = {
    {"chatml", "<|im_start|>", "<|im_end|>", "<|im_sep|>"},
    {"llama3", "<|start_header_id|>", "<|eot_id|>", "<|python_start|>"},
    {"gemma", "<start_of_turn>", "<end_of_turn>", "<|"},
    {"llama2", "<<SYS>>", "[/INST]", "<|"},
    {"phi3", "<|user|>", "<|end|>", "<|start|>"},
    {"zephyr", "'<|user|>'+message['content']+eos_token", "<|assistant|>", "<|end|>"},
    {"zephyr", "'<|user|>'+message['content']+'</s>", "<|assistant|>", "<|end|>"},
    {"mistral", "[INST]", " [/INST]", "[SYSTEM_PROMPT]"},
    {"mistral-v3", "[INST] ", "[/INST]", "[SYSTEM_PROMPT]"},
    {"mistral-tekken", "[INST]", "[/INST]", "[SYSTEM_PROMPT]"},
};

const ChatTemplate* find(std::string_view name) {
  for (const ChatTemplate& row : table)
    if (row.name == name) return &row;
  return nullptr;
}

std::string_view trimmed(std::string_view text, bool start) {
  size_t begin = 0, end = text.size();
  while (end > 0) {
    const size_t last = code_point_before(text, end);
    if (!is_white_space(code_point_at(text, last).value)) break;
    end = last;
  }
  while (start && begin < end && is_white_space(code_point_at(text, begin).value))
    begin += code_point_at(text, begin).bytes;
  return text.substr(begin, end - begin);
}

struct Filling {
  std::string_view system, user, answer, bos, eos;
};

/// `text` with its places filled; what the messages hold is not looked at again.
std::string filled(std::string_view text, const Filling& filling) {
  const std::pair<std::string_view, std::string_view> places[] = {
      {"{system}", filling.system},
      {"{system|trim}", trimmed(filling.system, true)},
      {"{user}", filling.user},
      {"{user|trim}", trimmed(filling.user, true)},
      {"{user|trim_end}", trimmed(filling.user, false)},
      {"{answer}", filling.answer},
      {"{answer|trim}", trimmed(filling.answer, true)},
      {"{bos}", filling.bos},
      {"{eos}", filling.eos}};
  std::string out;
  while (!text.empty()) {
    const size_t brace = std::min(text.find('{'), text.size());
    out += text.substr(0, brace);
    text.remove_prefix(brace);
    if (text.empty()) break;
    const auto* place = std::find_if(std::begin(places), std::end(places),
                                     [&](const auto& row) { return text.starts_with(row.first); });
    SINTER_CHECK(place != std::end(places), "a chat template has no place \"{}\"", text);
    out += place->second;
    text.remove_prefix(place->first.size());
  }
  return out;
}

/// Without white space, written or escaped, and with one kind of quotes.
std::string squeezed(std::string_view jinja) {
  std::string out;
  for (size_t i = 0; i < jinja.size(); ++i) {
    const char c = jinja[i];
    if (c == '\\' && jinja.substr(i + 1).starts_with('n'))
      ++i;
    else if (c == '"')
      out += '\'';
    else if (c != ' ' && c != '\n' && c != '\t' && c != '\r')
      out += c;
  }
  return out;
}

constexpr std::string_view kDate = "Cutting Knowledge Date";

/// The beginning of a system message that stands in the template itself: a text right after the
/// place where system messages begin, where others have the end of a literal or an expression.
std::string own_system(std::string_view jinja) {
  if (jinja.find(kDate) != jinja.npos) return std::string(kDate);
  for (const std::string_view mark :
       {"<|im_start|>system", "<|start_header_id|>system<|end_header_id|>", "<|system|>", "<<SYS>>",
        "system_message = '", "system_message = \""}) {
    for (size_t at = jinja.find(mark); at != jinja.npos; at = jinja.find(mark, at + 1)) {
      std::string_view rest = jinja.substr(at + mark.size());
      while (rest.starts_with("\\n") || rest.starts_with('\n') || rest.starts_with(' '))
        rest.remove_prefix(rest[0] == '\\' ? 2 : 1);
      const std::string_view text = rest.substr(0, rest.find_first_of("'\"{<\\"));
      if (!text.empty()) return std::string(text);
    }
  }
  return {};
}

/// The text of a literal up to `end`, its escaped newlines as newlines. Nothing where the literal
/// ends before, or has an escape that is not known.
std::optional<std::string> literal_text(std::string_view jinja, std::string_view end) {
  std::string text;
  for (size_t i = 0; i < jinja.size(); ++i) {
    if (jinja.substr(i).starts_with(end)) return text;
    if (std::string_view("'\"{}").find(jinja[i]) != std::string_view::npos) return std::nullopt;
    if (jinja[i] != '\\') {
      text += jinja[i];
    } else if (jinja.substr(i + 1).starts_with('n')) {
      text += '\n';
      ++i;
    } else {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

/// The system message that the template has as a literal in the form of `form`, for conversations
/// without one.
std::optional<std::string> default_system(std::string_view jinja, std::string_view bare,
                                          const ChatTemplate& form) {
  constexpr std::string_view kPlace = "{system";
  const size_t place = form.with_system.find(kPlace);
  std::string_view head = form.with_system.substr(0, place);
  const std::string_view rest = form.with_system.substr(form.with_system.find('}', place) + 1);
  const std::string_view end = rest.substr(0, rest.find('>') + 1);
  const bool asks = bare.find("!='system'") != bare.npos || bare.find("=='system'") != bare.npos;
  if (!asks || !end.starts_with("<|") || !head.ends_with('\n')) return std::nullopt;
  size_t lines = 0;
  for (; head.ends_with('\n'); head.remove_suffix(1)) ++lines;
  std::optional<std::string> found;
  for (size_t at = jinja.find(head); at != jinja.npos; at = jinja.find(head, at + 1)) {
    std::string_view after = jinja.substr(at + head.size());
    size_t newlines = 0;
    for (; newlines < lines && (after.starts_with("\\n") || after.starts_with('\n')); ++newlines)
      after.remove_prefix(after[0] == '\\' ? 2 : 1);
    if (newlines < lines) continue;
    const std::optional<std::string> text = literal_text(after, end);
    if (!text || text->empty()) continue;
    if (trimmed(*text, true) != *text) return std::nullopt;  // some forms trim messages
    if (found && found != text) return std::nullopt;
    found = text;
  }
  return found;
}

/// One template, or a list of named ones, of which "default" counts.
Result<std::string> template_text(const JsonView& view) {
  if (!view.value()->array()) return view.string();
  for (size_t i = 0; i < view.value()->array()->size(); ++i) {
    SINTER_LET(name, view[i]["name"].string());
    if (name == "default") return view[i]["template"].string();
  }
  return view.fail("none of these templates is called \"default\"",
                   "give --chat-template NAME: " + chat_template_names());
}

/// Whether the folder has a template file, which then counts before tokenizer_config.json.
bool has_templates(const std::filesystem::path& folder) {
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error))
    if (at->path().extension() == ".jinja") return true;
  return false;
}

/// The texts of begin and end tokens.
Result<FolderTokens> named_tokens(const JsonView& config) {
  FolderTokens tokens;
  for (const char* key : {"bos_token", "eos_token"}) {
    SINTER_LET(text, config[key].string_or(""));
    if (!text.empty()) tokens.named.emplace_back(key, text);
  }
  return tokens;
}

Result<ChatFormat> recognized(std::string_view jinja, const std::string& where) {
  if (auto format = recognize_chat_format(jinja)) return std::move(*format);
  return fail("the program knows a few chat templates by heart, and this is none of them", where,
              "`python -m sinter generate --chat --prompt TEXT` renders every template; or give "
              "--chat-template NAME: " +
                  chat_template_names());
}

}  // namespace

std::span<const ChatTemplate> chat_templates() { return table; }

std::string chat_template_names() {
  std::string list;
  for (const ChatTemplate& row : table)
    list += fmt::format("{}{}", list.empty() ? "" : ", ", row.name);
  return list;
}

std::string ChatFormat::prompt(const std::optional<std::string>& system,
                               std::string_view user) const {
  return filled(system ? form->with_system : form->without_system,
                {system ? std::string_view(*system) : "", user, {}, bos, eos});
}

std::string ChatFormat::further(std::string_view answer, std::string_view user) const {
  return filled(form->further, {{}, user, answer, bos, eos});
}

std::string ChatFormat::end() const { return filled(form->end, {{}, {}, {}, bos, eos}); }

std::vector<std::string> ChatFormat::markers() const {
  std::vector<std::string> result;
  for (std::string_view rest = form->markers; !rest.empty();) {
    const size_t space = std::min(rest.find(' '), rest.size());
    result.push_back(filled(rest.substr(0, space), {{}, {}, {}, bos, eos}));
    rest.remove_prefix(std::min(space + 1, rest.size()));
  }
  return result;
}

std::optional<ChatFormat> recognize_chat_format(std::string_view jinja) {
  const std::string bare = squeezed(jinja);
  const auto has = [&](std::string_view mark) {
    return jinja.find(mark) != jinja.npos || bare.find(mark) != bare.npos;
  };
  for (const Sign& sign : signs)
    if (has(sign.mark) && has(sign.other_mark) && !has(sign.absent)) {
      ChatFormat format{find(sign.name), has("bos_token"), "</s>", own_system(jinja)};
      const bool dated = jinja.find(kDate) != jinja.npos;
      if (!dated) format.default_system = default_system(jinja, bare, *format.form);
      // Of two different messages it is not known which one counts.
      if (format.default_system && !format.default_system->starts_with(format.own_system))
        format.default_system.reset();
      if (format.default_system) format.own_system.clear();
      const bool trims = format.form->further.find("|trim}") != std::string_view::npos;
      format.rewrites_answers =
          has("</think>") || has(".split(") || (!trims && (has("|trim") || has("strip(")));
      return format;
    }
  return std::nullopt;
}

Result<ChatFormat> read_chat_format(const std::string& folder, std::string_view name) {
  const std::filesystem::path path(folder);
  const std::string config = (path / "tokenizer_config.json").string();
  const std::filesystem::path further = path / "additional_chat_templates";
  std::string jinja = (further / "default.jinja").string();
  if (!path_exists(jinja)) jinja = (path / "chat_template.jinja").string();
  std::optional<JsonDocument> document;
  const std::optional<std::string> gguf = gguf_model(folder);
  if (gguf) {
    SINTER_LET(file, GgufFile::open(*gguf));
    document = gguf_tokenizer_config(file);
  } else if (path_exists(config)) {
    SINTER_LET(read, read_json(config));
    document = std::move(read);
  }
  std::optional<ChatFormat> format;
  if (!name.empty()) {
    const ChatTemplate* form = find(name);
    if (!form)
      return fail(fmt::format("no chat template is called \"{}\"", printable(name)),
                  "--chat-template", "give one of " + chat_template_names());
    format = ChatFormat{form, form->begins};
  } else if (path_exists(jinja)) {
    SINTER_LET(text, read_small_file(jinja, max_template_bytes));
    SINTER_LET(found, recognized(text, jinja));
    format = std::move(found);
  } else if (has_templates(further)) {
    return fail("none of these templates is called \"default\"", further.string(),
                "give --chat-template NAME: " + chat_template_names());
  } else if (document && document->view()["chat_template"].present()) {
    const JsonView view = document->view()["chat_template"];
    SINTER_LET(text, template_text(view));
    SINTER_LET(found, recognized(text, fmt::format("{}: {}", document->file, view.pointer())));
    format = std::move(found);
  } else {
    return fail(gguf ? "no tokenizer.chat_template says how the model chats"
                     : "neither chat_template.jinja nor tokenizer_config.json says how the model "
                       "chats",
                folder, "give --chat-template NAME: " + chat_template_names());
  }
  SINTER_LET(tokens, gguf ? named_tokens(document->view())
                          : read_folder_tokens(folder, JsonView(folder, nullptr)));
  if (const std::string* eos = tokens.find_named("eos_token")) format->eos = *eos;
  if (const std::string* bos = tokens.find_named("bos_token")) format->bos = *bos;
  return std::move(*format);
}

}  // namespace sinter
