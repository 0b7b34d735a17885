#include "frontends/huggingface/generation.h"

#include <fmt/format.h>

namespace sinter {

namespace {

struct Setting {
  std::string_view key;
  double off;  // the number that changes nothing
};
// Absent, null, empty and false change nothing either. -1 is no token.
constexpr Setting kSettings[] = {
    {"bad_words_ids", 0},
    {"begin_suppress_tokens", 0},
    {"exponential_decay_length_penalty", 0},
    {"forced_bos_token_id", -1},
    {"forced_decoder_ids", -1},
    {"forced_eos_token_id", -1},
    {"guidance_scale", 1},
    {"min_length", 0},
    {"min_new_tokens", 0},
    {"no_repeat_ngram_size", 0},
    {"num_beams", 1},
    {"penalty_alpha", 0},
    {"repetition_penalty", 1},
    {"sequence_bias", 0},
    {"suppress_tokens", 0},
};

bool changes(const JsonValue& value, double off) {
  if (const int64_t* whole = value.integer()) return static_cast<double>(*whole) != off;
  if (const double* real = value.real()) return *real != off;
  if (value.oversized()) return true;
  if (const JsonValue::Array* list = value.array()) return !list->empty();
  if (const JsonValue::Object* members = value.object()) return !members->empty();
  return false;
}

}  // namespace

std::vector<std::string> unapplied_settings(const JsonView& root) {
  std::vector<std::string> list;
  for (const Setting& setting : kSettings) {
    const JsonView view = root[setting.key];
    if (!view.present() || !changes(*view.value(), setting.off)) continue;
    const Result<double> number = view.number();
    list.push_back(number ? fmt::format("{} {}", setting.key, *number) : std::string(setting.key));
  }
  return list;
}

}  // namespace sinter
