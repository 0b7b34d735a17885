// Vectors of texts: an encoder compiled and loaded once.
#include "api/device.h"
#include "api/options.h"
#include "driver/embed/embed.h"
#include "driver/embed/text_tokens.h"
#include "driver/text.h"
#include "frontends/files/json.h"

struct sinter_encoder {
  ~sinter_encoder() {
    const sinter::CudaContextGuard guard(device->cuda_api());
    ready = {};
  }

  std::shared_ptr<sinter::Device> device;
  sinter::OpenedModel model;
  sinter::ReadyPlan ready;
  std::optional<sinter::Tokenizer> tokenizer;
  sinter::Pooling pooling;
  std::atomic<bool> encodes = false;
};

namespace sinter {
namespace {

Result<Pooling> read_pooling(OptionReader& reader, const char* path) {
  SINTER_LET(files, model_files(path));
  SINTER_LET(pooling, find_pooling(files));
  if (const auto kind = reader.text("pooling")) {
    if (*kind != "mean" && *kind != "cls")
      return fail(fmt::format("\"{}\" is no way of pooling", printable(*kind, 60)),
                  OptionReader::where("pooling"), "give mean or cls", ExitCode::usage);
    pooling.kind = *kind == "cls" ? PoolingKind::cls : PoolingKind::mean;
  }
  SINTER_LET(normalize, reader.flag("normalize", pooling.normalize));
  pooling.normalize = normalize;
  return pooling;
}

Result<std::unique_ptr<sinter_encoder>> open_encoder(const char* path, const sinter_device& device,
                                                     const sinter_options* options) {
  OptionReader reader(options);
  SINTER_LET(open, read_open_options(reader));
  SINTER_LET(compile, read_compile_options(reader));
  SINTER_LET(pooling, read_pooling(reader, path));
  SINTER_TRY(reader.finish());
  const Progress progress(options);
  SINTER_TRY(progress("model", 0, 1));
  auto made = std::make_unique<sinter_encoder>();
  made->device = device.device;
  made->pooling = pooling;
  const CudaContextGuard guard(device.device->cuda_api());
  SINTER_LET(opened, open_model(path, open));
  made->model = std::move(opened);
  SINTER_TRY(require_encoder(made->model));
  SINTER_LET(tokenizer, open_tokenizer(path));
  made->tokenizer = std::move(tokenizer);
  SINTER_TRY(progress("model", 1, 1));
  SINTER_LET(backend, backend_on(device, progress.weights()));
  SINTER_LET(ready, make_ready(made->model, compile, *backend));
  made->ready = std::move(ready);
  return made;
}

Status encode_texts(const sinter_encoder& encoder, llvm::ArrayRef<std::string> texts,
                    const sinter_options* options, float* vectors, size_t& cut) {
  OptionReader reader(options);
  EmbedOptions embedding;
  embedding.pooling = encoder.pooling;
  SINTER_LET(truncate, reader.flag("truncate", false));
  SINTER_LET(prompt, choose_prompt(encoder.pooling.prompts, reader.text("prompt"),
                                   reader.text("prompt-name")));
  SINTER_LET(activation_bytes, read_activation_memory(reader));
  embedding.activation_bytes = activation_bytes;
  SINTER_TRY(reader.finish());
  for (size_t i = 0; i < texts.size(); ++i)
    SINTER_TRY(check_utf8(texts[i], fmt::format("text {}", i + 1)));
  const int64_t most = most_tokens(*encoder.model.spec, encoder.pooling);
  SINTER_LET(tokens, tokenize_texts(*encoder.tokenizer, texts,
                                    truncate ? std::optional(most) : std::nullopt, prompt));
  embedding.prompt_tokens = tokens.prompt_tokens;
  const CudaContextGuard guard(encoder.device->cuda_api());
  SINTER_TRY(embed(encoder.model, encoder.ready, tokens.texts, embedding,
                   [&](llvm::ArrayRef<double> vector) -> Status {
                     for (double value : vector) *vectors++ = static_cast<float>(value);
                     return {};
                   }));
  cut = tokens.cut.size();
  return {};
}

}  // namespace
}  // namespace sinter

using namespace sinter;

sinter_error* sinter_encoder_open(const char* path, const sinter_device* device,
                                  const sinter_options* options, sinter_encoder** encoder) {
  return make_handle(encoder, [&]() -> Result<std::unique_ptr<sinter_encoder>> {
    SINTER_TRY(require(path, "path"));
    SINTER_TRY(require(device, "device"));
    return open_encoder(path, *device, options);
  });
}

size_t sinter_encoder_width(const sinter_encoder* encoder) {
  return encoder ? static_cast<size_t>(encoder->model.spec->hidden) : 0;
}

sinter_error* sinter_encoder_prompts(const sinter_encoder* encoder, char** json) {
  return give_text(json, [&]() -> Result<std::string> {
    SINTER_TRY(require(encoder, "encoder"));
    const Prompts& known = encoder->pooling.prompts;
    JsonValue::Object prompts;
    for (const Prompt& prompt : known.all) prompts.push_back({prompt.name, JsonValue(prompt.text)});
    JsonValue name;
    if (known.default_name) name = JsonValue(*known.default_name);
    return to_text(JsonValue(JsonValue::Object{{"prompts", JsonValue(std::move(prompts))},
                                               {"default_prompt_name", std::move(name)}}));
  });
}

sinter_error* sinter_encoder_encode(sinter_encoder* encoder, const char* const* texts, size_t count,
                                    const sinter_options* options, float* vectors, size_t* cut) {
  if (cut) *cut = 0;
  if (!encoder) return border([] { return require(nullptr, "encoder"); });
  return border_in_turn(encoder->encodes, [&]() -> Status {
    if (count == 0) return {};
    SINTER_TRY(require(texts, "texts"));
    SINTER_TRY(require(vectors, "vectors"));
    std::vector<std::string> copies;
    for (size_t i = 0; i < count; ++i) {
      SINTER_TRY(require(texts[i], "texts"));
      copies.emplace_back(texts[i]);
    }
    size_t texts_cut = 0;
    SINTER_TRY(encode_texts(*encoder, copies, options, vectors, texts_cut));
    if (cut) *cut = texts_cut;
    return {};
  });
}

void sinter_encoder_free(sinter_encoder* encoder) { free_handle(encoder); }
