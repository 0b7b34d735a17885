// Sequences of a language model that decode together and come and go.
#include "api/language_model.h"
#include "driver/generate/finite_logits.h"
#include "driver/generate/sequence_batch.h"

struct sinter_batch {
  ~sinter_batch() {
    const sinter::CudaContextGuard guard(device->cuda_api());
    batch = {};
  }

  std::shared_ptr<sinter::Device> device;
  std::shared_ptr<const sinter::OpenedModel> model;
  std::unique_ptr<sinter::SequenceBatch> batch;
  /// The progress of the running function, or null. The batch feeds prompts with what it was made
  /// with, which asks here.
  const sinter::Progress* progress = nullptr;
  std::shared_ptr<std::atomic<bool>> in_use;  // of the model
  /// The count when the last function ended; any thread reads it.
  std::atomic<size_t> free_places = 0;
};

namespace sinter {
namespace {

void count_places(sinter_batch& batch) {
  batch.free_places = static_cast<size_t>(batch.batch->free_places());
}

Result<std::unique_ptr<sinter_batch>> make_batch(const sinter_language_model& model, size_t places,
                                                 int64_t capacity, const sinter_options* options) {
  if (places > static_cast<size_t>(kMaxSequences))
    return fail(fmt::format("{} places", places), {},
                fmt::format("1 to {} sequences decode together", kMaxSequences), ExitCode::usage);
  if (capacity < 1 || capacity > model.model->spec->max_positions)
    return fail(fmt::format("a capacity of {} tokens", capacity), {},
                fmt::format("the model has 1 to {} positions", model.model->spec->max_positions),
                ExitCode::usage);
  OptionReader reader(options);
  SINTER_LET(prefill, read_prefill_options(reader));
  SINTER_TRY(reader.finish());
  auto made = std::make_unique<sinter_batch>();
  made->device = model.device;
  made->model = model.model;
  made->in_use = model.in_use;
  prefill.progress = [batch = made.get()](int64_t done, int64_t total) {
    return !batch->progress || (*batch->progress)("prompts", done, total).has_value();
  };
  const CudaContextGuard guard(model.device->cuda_api());
  SINTER_LET(batch, SequenceBatch::create(model.ready.executable, static_cast<int64_t>(places),
                                          capacity, prefill));
  made->batch = std::move(batch);
  count_places(*made);
  return made;
}

Status add_to(sinter_batch& batch, llvm::ArrayRef<int32_t> prompt, const sinter_options* options,
              int64_t* sequence) {
  OptionReader reader(options);
  SINTER_LET(sampling, read_sampling(reader));
  SINTER_TRY(reader.finish());
  const Progress progress(options);
  batch.progress = &progress;
  const CudaContextGuard guard(batch.device->cuda_api());
  const auto added = explained(batch.batch->add(prompt, sampling), *batch.model);
  batch.progress = nullptr;
  if (!added) return tl::make_unexpected(added.error());
  count_places(batch);
  *sequence = *added;
  return {};
}

Status step_of(sinter_batch& batch, int64_t* sequences, int32_t* tokens, size_t* count) {
  const auto taken = static_cast<size_t>(batch.batch->places() - batch.batch->free_places());
  const size_t room = std::exchange(*count, 0);
  if (room < taken)
    return fail(fmt::format("room for {} tokens, there are {} sequences", room, taken), {},
                "give room for as many as the batch has places", ExitCode::usage);
  const CudaContextGuard guard(batch.device->cuda_api());
  SINTER_LET(given, explained(batch.batch->step(), *batch.model));
  for (const SequenceBatch::Token& token : given) {
    sequences[*count] = token.sequence;
    tokens[(*count)++] = token.token;
  }
  return {};
}

}  // namespace
}  // namespace sinter

using namespace sinter;

sinter_error* sinter_batch_create(const sinter_language_model* model, size_t places,
                                  int64_t capacity, const sinter_options* options,
                                  sinter_batch** batch) {
  return make_handle(batch, [&]() -> Result<std::unique_ptr<sinter_batch>> {
    SINTER_TRY(require(model, "model"));
    return in_turn(*model->in_use, [&] { return make_batch(*model, places, capacity, options); });
  });
}

sinter_error* sinter_batch_add(sinter_batch* batch, const int32_t* tokens, size_t token_count,
                               const sinter_options* options, int64_t* sequence) {
  if (!batch) return border([] { return require(nullptr, "batch"); });
  return border_in_turn(*batch->in_use, [&]() -> Status {
    SINTER_TRY(require(sequence, "sequence"));
    if (token_count > 0) SINTER_TRY(require(tokens, "tokens"));
    return add_to(*batch, {tokens, token_count}, options, sequence);
  });
}

sinter_error* sinter_batch_remove(sinter_batch* batch, int64_t sequence) {
  if (!batch) return border([] { return require(nullptr, "batch"); });
  return border_in_turn(*batch->in_use, [&]() -> Status {
    SINTER_TRY(batch->batch->remove(sequence));
    count_places(*batch);
    return {};
  });
}

sinter_error* sinter_batch_step(sinter_batch* batch, int64_t* sequences, int32_t* tokens,
                                size_t* count) {
  if (!batch) return border([] { return require(nullptr, "batch"); });
  return border_in_turn(*batch->in_use, [&]() -> Status {
    SINTER_TRY(require(count, "count"));
    SINTER_TRY(require(sequences, "sequences"));
    SINTER_TRY(require(tokens, "tokens"));
    return step_of(*batch, sequences, tokens, count);
  });
}

size_t sinter_batch_free_places(const sinter_batch* batch) {
  return batch ? batch->free_places.load() : 0;
}

void sinter_batch_free(sinter_batch* batch) { free_handle(batch); }
