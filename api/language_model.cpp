// Generating text: a language model compiled and loaded once, for many prompts.
#include "api/language_model.h"

#include "api/callbacks.h"
#include "driver/generate/chat.h"
#include "driver/generate/generate.h"

namespace sinter {
namespace {

constexpr int64_t kUsualCount = 64;

Result<std::unique_ptr<sinter_language_model>> open_language_model(const char* path,
                                                                   const sinter_device& device,
                                                                   const sinter_options* options) {
  OptionReader reader(options);
  SINTER_LET(open, read_open_options(reader));
  SINTER_LET(compile, read_compile_options(reader));
  const std::optional<std::string> chat_template = reader.text("chat-template");
  SINTER_TRY(reader.finish());
  const Progress progress(options);
  SINTER_TRY(progress("model", 0, 1));
  auto made = std::make_unique<sinter_language_model>();
  made->device = device.device;
  const CudaContextGuard guard(device.device->cuda_api());
  made->path = path;
  made->chat_template = chat_template.value_or("");
  SINTER_LET(opened, open_model(path, open));
  made->model = std::make_shared<const OpenedModel>(std::move(opened));
  SINTER_TRY(check_tokens(*made->model, {}));
  SINTER_LET(tokenizer, find_tokenizer(path));
  made->tokenizer = std::move(tokenizer);
  SINTER_TRY(progress("model", 1, 1));
  SINTER_LET(backend, backend_on(device, progress.weights()));
  SINTER_LET(ready, make_ready(*made->model, compile, *backend));
  made->ready = std::move(ready);
  return made;
}

Result<const Tokenizer*> tokenizer_of(const sinter_language_model& model) {
  if (model.tokenizer) return &*model.tokenizer;
  return tl::make_unexpected(open_tokenizer(model.path).error());
}

Status give_tokens(llvm::ArrayRef<int32_t> ids, int32_t** tokens, size_t* count) {
  SINTER_LET(copy, copy_tokens(ids));
  *tokens = copy;
  *count = ids.size();
  return {};
}

Status check_token_results(int32_t** tokens, size_t* count) {
  SINTER_TRY(require(tokens, "tokens"));
  SINTER_TRY(require(count, "token_count"));
  *tokens = nullptr;
  *count = 0;
  return {};
}

Result<ChatPrompt> encode_message(const sinter_language_model& model, const char* system,
                                  const char* message) {
  SINTER_LET(tokenizer, tokenizer_of(model));
  SINTER_TRY(check_utf8(message, "message"));
  std::optional<std::string> first;
  if (system) {
    SINTER_TRY(check_utf8(system, "system"));
    first = system;
  }
  SINTER_LET(files, model_files(model.path));
  SINTER_LET(format, read_chat_format(files, model.chat_template));
  SINTER_LET(text, first_message(format, first, message, model.path));
  return encode_chat(*tokenizer, format, text);
}

/// The caller's function for a token and its text; empty: there is none.
using OnText = std::function<int(size_t sequence, int32_t token, const std::string& text)>;

/// Decodes the tokens of each sequence as they come, and hands them to the caller.
class TokenCallback {
 public:
  TokenCallback(const sinter_language_model& model, llvm::ArrayRef<std::vector<int32_t>> prompts,
                const OnText& on_text)
      : on_text_(on_text) {
    if (!model.tokenizer) return;
    for (const auto& prompt : prompts) {
      streams_.emplace_back(*model.tokenizer, true);
      // A continuation is part of its prompt's text.
      for (int32_t id : prompt)
        if (status_) keep(streams_.back().push(id));
    }
  }

  /// false: the generation ends.
  bool operator()(size_t sequence, int32_t token) {
    std::string text;
    if (!streams_.empty()) text = keep(streams_[sequence].push(token));
    if (!status_) return false;
    if (!on_text_) return true;
    auto answer = call_back("token callback", [&] { return on_text_(sequence, token, text); });
    if (!answer) status_ = tl::make_unexpected(std::move(answer.error()));
    return status_ && *answer == 0;
  }
  const Status& status() const { return status_; }

 private:
  std::string keep(Result<std::string> text) {
    if (text) return std::move(*text);
    status_ = tl::make_unexpected(text.error());
    return {};
  }

  const OnText& on_text_;
  std::vector<TextStream> streams_;
  Status status_;
};

Status generate_with(const sinter_language_model& model, std::vector<std::vector<int32_t>> prompts,
                     const sinter_options* options, const OnText& on_text) {
  OptionReader reader(options);
  GenerateOptions generating;
  SINTER_LET(count, reader.integer<int64_t>("count", {.least = 1}));
  generating.count = count.value_or(kUsualCount);
  SINTER_LET(stop, reader.flag("stop-at-end", true));
  generating.stop_at_eos = stop;
  if (const auto ends = reader.text("end")) {
    const auto last = static_cast<int32_t>(model.model->spec->vocabulary - 1);
    SINTER_LET(ids, parse_integers<int32_t>(*ends, OptionReader::where("end"),
                                            {.least = 0, .most = last}));
    generating.ends = std::move(ids);
  }
  SINTER_LET(sampling, read_sampling(reader));
  generating.sampling = sampling;
  SINTER_LET(prefill, read_prefill_options(reader));
  generating.prefill = prefill;
  const Progress progress(options);
  generating.prefill.progress = [&](int64_t done, int64_t total) {
    return progress("prompts", done, total).has_value();
  };
  SINTER_TRY(reader.finish());
  SINTER_TRY(check_prompts(*model.model, prompts, generating.count));
  const CudaContextGuard guard(model.device->cuda_api());
  TokenCallback callback(model, prompts, on_text);
  generating.on_token = [&](size_t sequence, int32_t token) { return callback(sequence, token); };
  SINTER_TRY(callback.status());
  SINTER_TRY(generate(*model.model, model.ready, prompts, generating));
  return callback.status();
}

sinter_error* generate_in_turn(sinter_language_model* model, const int32_t* const* prompts,
                               const size_t* lengths, size_t prompt_count,
                               const sinter_options* options, const OnText& on_text) {
  if (!model) return border([] { return require(nullptr, "model"); });
  return border_in_turn(*model->in_use, [&]() -> Status {
    SINTER_TRY(require(prompts, "prompts"));
    SINTER_TRY(require(lengths, "lengths"));
    if (prompt_count == 0) return fail("there is no prompt", {}, {}, ExitCode::usage);
    std::vector<std::vector<int32_t>> texts;
    for (size_t i = 0; i < prompt_count; ++i) {
      SINTER_TRY(require(prompts[i], "prompts"));
      if (lengths[i] == 0)
        return fail(fmt::format("prompt {} has no token", i + 1), {}, "give one at least",
                    ExitCode::usage);
      texts.emplace_back(prompts[i], prompts[i] + lengths[i]);
    }
    return generate_with(*model, std::move(texts), options, on_text);
  });
}

Result<std::string> decoded(const sinter_language_model* model, const int32_t* tokens,
                            size_t token_count) {
  SINTER_TRY(require(model, "model"));
  if (token_count > 0) SINTER_TRY(require(tokens, "tokens"));
  SINTER_LET(tokenizer, tokenizer_of(*model));
  return tokenizer->decode({tokens, token_count}, true);
}

}  // namespace
}  // namespace sinter

using namespace sinter;

sinter_error* sinter_language_model_open(const char* path, const sinter_device* device,
                                         const sinter_options* options,
                                         sinter_language_model** model) {
  return make_handle(model, [&]() -> Result<std::unique_ptr<sinter_language_model>> {
    SINTER_TRY(require(path, "path"));
    SINTER_TRY(require(device, "device"));
    return open_language_model(path, *device, options);
  });
}

sinter_error* sinter_language_model_encode(const sinter_language_model* model, const char* text,
                                           int32_t** tokens, size_t* token_count) {
  return border([&]() -> Status {
    SINTER_TRY(check_token_results(tokens, token_count));
    SINTER_TRY(require(model, "model"));
    SINTER_TRY(require(text, "text"));
    SINTER_LET(tokenizer, tokenizer_of(*model));
    SINTER_TRY(check_utf8(text, "text"));
    SINTER_LET(ids, tokenizer->encode(text, true));
    return give_tokens(ids, tokens, token_count);
  });
}

sinter_error* sinter_language_model_encode_chat(const sinter_language_model* model,
                                                const char* system, const char* message,
                                                int32_t** tokens, size_t* token_count,
                                                int32_t* end) {
  return border([&]() -> Status {
    SINTER_TRY(check_token_results(tokens, token_count));
    SINTER_TRY(require(model, "model"));
    SINTER_TRY(require(message, "message"));
    SINTER_TRY(require(end, "end"));
    SINTER_LET(prompt, encode_message(*model, system, message));
    *end = prompt.end.value_or(-1);
    return give_tokens(prompt.ids, tokens, token_count);
  });
}

sinter_error* sinter_language_model_decode(const sinter_language_model* model,
                                           const int32_t* tokens, size_t token_count, char** text) {
  return give_text(text, [&] { return decoded(model, tokens, token_count); });
}

sinter_error* sinter_language_model_decode_all(const sinter_language_model* model,
                                               const int32_t* tokens, size_t token_count,
                                               char** text, size_t* size) {
  if (size) *size = 0;
  return give_text(text, [&]() -> Result<std::string> {
    SINTER_TRY(require(size, "size"));
    SINTER_LET(all, decoded(model, tokens, token_count));
    *size = all.size();
    return all;
  });
}

sinter_error* sinter_language_model_generate(sinter_language_model* model,
                                             const int32_t* const* prompts, const size_t* lengths,
                                             size_t prompt_count, const sinter_options* options,
                                             sinter_on_token on_token, void* user) {
  OnText on_text;
  if (on_token)
    on_text = [&](size_t sequence, int32_t token, const std::string& text) {
      return on_token(user, sequence, token, text.c_str());
    };
  return generate_in_turn(model, prompts, lengths, prompt_count, options, on_text);
}

sinter_error* sinter_language_model_generate_text(sinter_language_model* model,
                                                  const int32_t* const* prompts,
                                                  const size_t* lengths, size_t prompt_count,
                                                  const sinter_options* options,
                                                  sinter_on_text on_text, void* user) {
  OnText given;
  if (on_text)
    given = [&](size_t sequence, int32_t token, const std::string& text) {
      return on_text(user, sequence, token, text.data(), text.size());
    };
  return generate_in_turn(model, prompts, lengths, prompt_count, options, given);
}

void sinter_language_model_free(sinter_language_model* model) { free_handle(model); }
