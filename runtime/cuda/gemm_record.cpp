#include "runtime/cuda/gemm_record.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "ir/c_locale.h"
#include "ir/json_pointer.h"

namespace sinter {
namespace {

using Json = nlohmann::json;

constexpr const char* kRecordName = "sinter.record";
constexpr int64_t kRecordVersion = 2;
constexpr uint64_t kMaxFormNumber = uint64_t{1} << 40;  // far beyond what any family takes

/// Reads one record; the place of a value is its JSON pointer after the file's name.
class RecordReader {
 public:
  explicit RecordReader(std::string path) : path_(std::move(path)) {}

  Result<GemmRecord> read(const Json& root) const {
    GemmRecord record;
    SINTER_TRY(check_format(root));
    SINTER_TRY(read_text(root, "", "device", record.device));
    SINTER_TRY(read_text(root, "", "library", record.library));
    SINTER_LET(choices, member(root, "", "choices"));
    if (!choices->is_object()) return mismatch("/choices", "an object", *choices);
    for (const auto& [key, value] : choices->items())
      SINTER_TRY(read_choice(value, "/choices" + json_pointer_step(key), record.choices[key]));
    if (!root.contains("forms")) return record;
    const Json& forms = root["forms"];
    if (!forms.is_object()) return mismatch("/forms", "an object", forms);
    for (const auto& [family, own] : forms.items()) {
      const std::string where = "/forms" + json_pointer_step(family);
      if (!own.is_object()) return mismatch(where, "an object", own);
      for (const auto& [key, value] : own.items())
        SINTER_TRY(read_form(value, where + json_pointer_step(key), record.forms[family][key]));
    }
    return record;
  }

 private:
  /// An older record has the version instead of the format's name.
  Status check_format(const Json& root) const {
    SINTER_LET(format, member(root, "", "format"));
    const bool named = format->is_string();
    if (named && *format != kRecordName)
      return mismatch("/format", fmt::format("\"{}\"", kRecordName), *format);
    const char* key = named ? "version" : "format";
    SINTER_LET(version, member(root, "", key));
    if (!version->is_number_integer() || *version != kRecordVersion)
      return mismatch(fmt::format("/{}", key), fmt::format("format {}", kRecordVersion), *version);
    return {};
  }

  Status read_choice(const Json& value, const std::string& where, GemmChoice& choice) const {
    std::string kind;
    SINTER_TRY(read_text(value, where, "kind", kind));
    if (kind == "cublaslt") {
      choice.kind = GemmChoice::Kind::cublaslt;
      SINTER_LET(algorithm, member(value, where, "algorithm"));
      for (size_t i = 0; i < kAlgorithmFields.size(); ++i)
        SINTER_TRY(read_number(*algorithm, where + "/algorithm", kAlgorithmFields[i], UINT32_MAX,
                               choice.algorithm[i]));
      SINTER_TRY(read_number(value, where, "workspace_bytes", kGemmWorkspaceBytes,
                             choice.workspace_bytes));
    } else if (kind != "own") {
      return mismatch(where + "/kind", "\"own\" or \"cublaslt\"", kind);
    }
    return read_seconds(value, where, choice.seconds);
  }

  Status read_form(const Json& value, const std::string& where, TunedForm& form) const {
    if (!value.is_object()) return mismatch(where, "an object", value);
    for (const auto& [name, number] : value.items())
      if (name != "seconds")
        SINTER_TRY(read_number(value, where, name.c_str(), kMaxFormNumber, form.numbers[name]));
    return read_seconds(value, where, form.seconds);
  }

  /// Reads the measured seconds, if the record has them.
  Status read_seconds(const Json& value, const std::string& where, double& out) const {
    if (!value.contains("seconds")) return {};
    const Json& seconds = value["seconds"];
    if (!seconds.is_number() || !(seconds.get<double>() >= 0) ||
        !std::isfinite(seconds.get<double>()))
      return mismatch(where + "/seconds", "a number of at least 0", seconds);
    out = seconds.get<double>();
    return {};
  }

  template <typename T>
  Status read_number(const Json& object, const std::string& where, const char* name, uint64_t most,
                     T& out) const {
    SINTER_LET(value, member(object, where, name));
    if (!value->is_number_unsigned() || value->get<uint64_t>() > most)
      return mismatch(fmt::format("{}/{}", where, name), fmt::format("an integer of 0..{}", most),
                      *value);
    out = value->get<T>();
    return {};
  }

  Result<const Json*> member(const Json& object, const std::string& where, const char* name) const {
    if (!object.is_object()) return mismatch(where, "an object", object);
    const auto it = object.find(name);
    if (it == object.end())
      return tl::make_unexpected(error(where, fmt::format("has no \"{}\"", name)));
    return &*it;
  }

  Status read_text(const Json& object, const std::string& where, const char* name,
                   std::string& out) const {
    SINTER_LET(value, member(object, where, name));
    if (!value->is_string()) return mismatch(fmt::format("{}/{}", where, name), "a string", *value);
    out = value->get<std::string>();
    return {};
  }

  tl::unexpected<Error> mismatch(const std::string& where, std::string_view expected,
                                 const Json& got) const {
    const std::string text = got.dump(-1, ' ', false, Json::error_handler_t::replace);
    return tl::make_unexpected(
        error(where, fmt::format("expected {}, got {}", expected, printable(text, 60))));
  }
  Error error(const std::string& where, std::string what) const {
    return Error{std::move(what),
                 where.empty() ? path_ : fmt::format("{}:{}", path_, printable(where)),
                 "write the record anew by tuning"};
  }

  std::string path_;
};

}  // namespace

std::string GemmRecord::to_json() const {
  nlohmann::ordered_json json = {{"format", kRecordName},
                                 {"version", kRecordVersion},
                                 {"device", device},
                                 {"library", library}};
  auto& list = json["choices"] = nlohmann::ordered_json::object();
  for (const auto& [key, choice] : choices) {
    auto& item = list[key];
    const bool library_call = choice.kind == GemmChoice::Kind::cublaslt;
    item["kind"] = library_call ? "cublaslt" : "own";
    if (library_call) {
      for (size_t i = 0; i < kAlgorithmFields.size(); ++i)
        item["algorithm"][kAlgorithmFields[i]] = choice.algorithm[i];
      item["workspace_bytes"] = choice.workspace_bytes;
    }
    if (choice.seconds != 0) item["seconds"] = choice.seconds;
  }
  for (const auto& [family, own] : forms)
    for (const auto& [key, form] : own) {
      auto& item = json["forms"][family][key];
      for (const auto& [name, number] : form.numbers) item[name] = number;
      if (form.seconds != 0) item["seconds"] = form.seconds;
    }
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + '\n';
}

Result<GemmRecord> GemmRecord::parse(const std::string& text, const std::string& path) {
  const CLocale numbers_with_a_point;
  const Json root = Json::parse(text, nullptr, false);
  if (root.is_discarded()) return fail("not JSON", path, "write the record anew by tuning");
  return RecordReader(path).read(root);
}

}  // namespace sinter
