// Named options of the C interface, and how a function reads those that it knows.
#pragma once

#include <map>
#include <optional>
#include <set>

#include "api/border.h"
#include "driver/compile/compile.h"
#include "driver/generate/generate.h"
#include "driver/integers.h"
#include "driver/opened_model.h"

struct sinter_options {
  std::map<std::string, std::string> values;
  std::vector<std::pair<std::string, std::string>> required, forbidden;
  sinter_progress progress = nullptr;
  void* user = nullptr;
};

namespace sinter {

/// Reads options by name. Values that do not fit are errors that name the option; finish() is an
/// error for options that nobody read.
class OptionReader {
 public:
  /// `options` may be null.
  explicit OptionReader(const sinter_options* options);

  std::optional<std::string> text(const std::string& name);
  /// Names with commas between; empty where the option is missing.
  std::vector<std::string> list(const std::string& name);
  Result<bool> flag(const std::string& name, bool usual);
  template <typename T>
  Result<std::optional<T>> integer(const std::string& name, IntegerRange<T> range = {}) {
    const auto value = text(name);
    if (!value) return std::optional<T>();
    SINTER_LET(number, parse_integer<T>(*value, where(name), range));
    return std::optional<T>(number);
  }
  Result<std::optional<double>> real(const std::string& name);
  /// The values of all options `prefix` + NAME, by NAME.
  Result<std::vector<std::pair<std::string, int64_t>>> integers_of(const std::string& prefix);

  /// Stores the required and forbidden pairs of values in `fusion`; the pairs count as read.
  void pairs(FusionOptions& fusion);

  Status finish() const;

  /// "option dtype"
  static std::string where(const std::string& name);

 private:
  const sinter_options& options_;
  std::set<std::string> known_;
  std::vector<std::string> prefixes_;
  bool pairs_read_ = false;
};

/// Bytes of the option activation-memory.
Result<int64_t> read_activation_memory(OptionReader& reader);
/// Reads activation-memory and prefill-chunk, the options of functions that run prompts.
Result<PrefillOptions> read_prefill_options(OptionReader& reader);
/// Reads the options of sinter_model_open.
Result<OpenOptions> read_open_options(OptionReader& reader);
/// Reads the options of sinter_compile.
Result<CompileOptions> read_compile_options(OptionReader& reader);
/// Reads the options of sinter_language_model_generate that choose tokens: temperature, top-p,
/// top-k and seed.
Result<Sampling> read_sampling(OptionReader& reader);

/// Calls the caller's progress function, if there is one; an error if it cancels.
class Progress {
 public:
  explicit Progress(const sinter_options* options) : options_(options) {}
  Status operator()(const char* stage, int64_t done, int64_t total) const;
  /// Reports the stage "weights"; it refers to this object.
  WeightProgress weights() const;

 private:
  const sinter_options* options_;
};

}  // namespace sinter
