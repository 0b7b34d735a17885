#include "api/options.h"

#include <charconv>

#include "api/callbacks.h"
#include "driver/streaming.h"
#include "ir/never_destroyed.h"

namespace sinter {
namespace {

const sinter_options& or_none(const sinter_options* options) {
  static const auto& none = never_destroyed([] { return sinter_options(); });
  return options ? *options : none;
}

}  // namespace

OptionReader::OptionReader(const sinter_options* options) : options_(or_none(options)) {}

std::string OptionReader::where(const std::string& name) { return "option " + printable(name); }

std::optional<std::string> OptionReader::text(const std::string& name) {
  known_.insert(name);
  const auto at = options_.values.find(name);
  if (at == options_.values.end()) return std::nullopt;
  return at->second;
}

std::vector<std::string> OptionReader::list(const std::string& name) {
  std::vector<std::string> parts;
  const auto value = text(name);
  for (size_t at = 0; value && at <= value->size();) {
    const size_t comma = std::min(value->find(',', at), value->size());
    parts.push_back(value->substr(at, comma - at));
    at = comma + 1;
  }
  return parts;
}

Result<bool> OptionReader::flag(const std::string& name, bool usual) {
  const auto value = text(name);
  if (!value) return usual;
  if (*value == "true") return true;
  if (*value == "false") return false;
  return fail(fmt::format("\"{}\" is neither true nor false", printable(*value)), where(name), {},
              ExitCode::usage);
}

Result<std::optional<double>> OptionReader::real(const std::string& name) {
  const auto value = text(name);
  if (!value) return std::nullopt;
  double number = 0;
  const char* const end = value->data() + value->size();
  const auto [stop, error] = std::from_chars(value->data(), end, number);
  if (error != std::errc() || stop != end)
    return fail(fmt::format("\"{}\" is no number", printable(*value)), where(name), {},
                ExitCode::usage);
  return number;
}

Result<std::vector<std::pair<std::string, int64_t>>> OptionReader::integers_of(
    const std::string& prefix) {
  prefixes_.push_back(prefix);
  std::vector<std::pair<std::string, int64_t>> found;
  for (const auto& [name, value] : options_.values) {
    if (!name.starts_with(prefix)) continue;
    SINTER_LET(number, parse_integer<int64_t>(value, where(name)));
    found.emplace_back(name.substr(prefix.size()), number);
  }
  return found;
}

void OptionReader::pairs(FusionOptions& fusion) {
  pairs_read_ = true;
  fusion.required = options_.required;
  fusion.forbidden = options_.forbidden;
}

Status OptionReader::finish() const {
  for (const auto& [name, value] : options_.values) {
    const bool has_prefix = std::any_of(prefixes_.begin(), prefixes_.end(),
                                        [&](const auto& one) { return name.starts_with(one); });
    if (known_.contains(name) || has_prefix) continue;
    return fail(fmt::format("no option is called \"{}\" here", printable(name)), {},
                known_.empty() ? "there are none"
                               : fmt::format("the options are {}", fmt::join(known_, ", ")),
                ExitCode::usage);
  }
  if (!pairs_read_ && (!options_.required.empty() || !options_.forbidden.empty()))
    return fail("pairs of values are given to what does not compile", {},
                "give them to sinter_compile", ExitCode::usage);
  return {};
}

Result<OpenOptions> read_open_options(OptionReader& reader) {
  OpenOptions open;
  if (const auto dtype = reader.text("dtype")) {
    SINTER_LET(parsed, parse_dtype_option(*dtype));
    open.dtype = parsed;
  }
  SINTER_LET(seed, reader.integer<uint64_t>("random-weights"));
  open.random_weights = seed;
  open.weights = reader.text("weights");
  open.ignored_keys = reader.list("ignore-key");
  SINTER_LET(context, reader.integer<int64_t>("context", {.least = 1}));
  open.context = context.value_or(0);
  if (const auto kv = reader.text("kv")) {
    SINTER_LET(streaming, parse_streaming(*kv));
    open.streaming = streaming;
  }
  SINTER_LET(sequences, reader.integer<int64_t>("sequences", {.least = 1, .most = kMaxSequences}));
  open.sequences = sequences.value_or(kUsualSequences);
  SINTER_LET(recompile, reader.flag("recompile", false));
  open.recompile = recompile;
  return open;
}

Result<CompileOptions> read_compile_options(OptionReader& reader) {
  CompileOptions compile;
  if (const auto target = reader.text("target")) compile.target = *target;
  SINTER_LET(fuse, reader.flag("fuse", true));
  compile.fusion.enabled = fuse;
  if (const auto numerics = reader.text("numerics")) {
    if (*numerics != "strict" && *numerics != "fast")
      return fail(fmt::format("\"{}\" is neither strict nor fast", printable(*numerics)),
                  OptionReader::where("numerics"), {}, ExitCode::usage);
    if (*numerics == "fast") compile.fusion.numerics = Numerics::fast;
  }
  if (const auto attention = reader.text("attention"))
    SINTER_TRY(choose_attention(*attention, OptionReader::where("attention"), compile.recipe));
  if (const auto products = reader.text("products"))
    SINTER_TRY(choose_products(*products, OptionReader::where("products"), compile.recipe));
  SINTER_LET(invariant, reader.flag("invariant", false));
  if (invariant) SINTER_TRY(choose_invariant(OptionReader::where("invariant"), compile));
  compile.entries = reader.list("entries");
  for (const std::string& pair : reader.list("overwrite")) {
    const size_t equal = pair.find('=');
    if (equal == std::string::npos)
      return fail(fmt::format("\"{}\" is no pair of names", printable(pair)),
                  OptionReader::where("overwrite"), "write OUTPUT=INPUT", ExitCode::usage);
    compile.overwritten.emplace_back(pair.substr(0, equal), pair.substr(equal + 1));
  }
  reader.pairs(compile.fusion);
  return compile;
}

Result<int64_t> read_activation_memory(OptionReader& reader) {
  const auto memory = reader.text("activation-memory");
  if (!memory) return kActivationBytes;
  return parse_memory(*memory, OptionReader::where("activation-memory"));
}

Result<PrefillOptions> read_prefill_options(OptionReader& reader) {
  PrefillOptions prefill;
  SINTER_LET(bytes, read_activation_memory(reader));
  prefill.activation_bytes = bytes;
  SINTER_LET(chunk, reader.integer<int64_t>("prefill-chunk", {.least = 1}));
  prefill.chunk = chunk;
  return prefill;
}

Result<Sampling> read_sampling(OptionReader& reader) {
  SINTER_LET(temperature, reader.real("temperature"));
  SINTER_LET(top_p, reader.real("top-p"));
  SINTER_LET(top_k, reader.integer<int32_t>("top-k", {.least = 0}));
  SINTER_LET(seed, reader.integer<int32_t>("seed"));
  return to_sampling({temperature, top_p, top_k, seed});
}

WeightProgress Progress::weights() const {
  return [this](size_t done, size_t total) {
    return (*this)("weights", static_cast<int64_t>(done), static_cast<int64_t>(total)).has_value();
  };
}

Status Progress::operator()(const char* stage, int64_t done, int64_t total) const {
  if (!options_ || !options_->progress) return {};
  SINTER_LET(answer, call_back("progress function", [&] {
               return options_->progress(options_->user, stage, done, total);
             }));
  if (answer == 0) return {};
  return fail("the progress function cancelled this", {}, {}, ExitCode::cancelled);
}

}  // namespace sinter

using namespace sinter;

sinter_error* sinter_options_create(sinter_options** options) {
  return make_handle(options, []() -> Result<std::unique_ptr<sinter_options>> {
    return std::make_unique<sinter_options>();
  });
}

sinter_error* sinter_options_set(sinter_options* options, const char* name, const char* value) {
  return border([&]() -> Status {
    SINTER_TRY(require(options, "options"));
    SINTER_TRY(require(name, "name"));
    SINTER_TRY(require(value, "value"));
    options->values[name] = value;
    return {};
  });
}

sinter_error* sinter_options_pair(sinter_options* options, int required, const char* a,
                                  const char* b) {
  return border([&]() -> Status {
    SINTER_TRY(require(options, "options"));
    SINTER_TRY(require(a, "a"));
    SINTER_TRY(require(b, "b"));
    (required ? options->required : options->forbidden).emplace_back(a, b);
    return {};
  });
}

void sinter_options_progress(sinter_options* options, sinter_progress progress, void* user) {
  if (!options) return;
  options->progress = progress;
  options->user = user;
}

void sinter_options_free(sinter_options* options) { free_handle(options); }
