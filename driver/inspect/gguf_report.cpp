#include "driver/inspect/gguf_report.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "driver/text_table.h"
#include "ir/characters.h"

namespace sinter {
namespace {

using Json = nlohmann::ordered_json;

std::string type_text(const GgufTensor& tensor) {
  return fmt::format("{}[{}]", gguf_type_info(tensor.type).name, fmt::join(tensor.dims, ", "));
}

/// "blk.12.attn_q.weight": "blk.*.attn_q.weight".
std::string without_numbers(std::string_view name) {
  std::string text;
  for (size_t i = 0; i < name.size(); ++i) {
    const bool begins = i == 0 || name[i - 1] == '.';
    size_t end = i;
    while (begins && end < name.size() && is_digit(name[end])) ++end;
    if (end == i || (end < name.size() && name[end] != '.')) {
      text += name[i];
    } else {
      text += '*';
      i = end - 1;
    }
  }
  return text;
}

struct Sum {
  std::string name, type;
  uint64_t count = 0, bytes = 0;
};

/// Tensors of one name and type together, in the order of the first of each.
class Sums {
 public:
  void add(const std::string& name, const std::string& type, uint64_t bytes) {
    const auto [at, is_new] = places_.try_emplace({name, type}, sums_.size());
    if (is_new) sums_.push_back({name, type});
    ++sums_[at->second].count;
    sums_[at->second].bytes += bytes;
  }
  const std::vector<Sum>& all() const { return sums_; }

 private:
  std::vector<Sum> sums_;
  std::map<std::pair<std::string, std::string>, size_t> places_;
};

Sums sums_by_type(const GgufFile& file) {
  Sums sums;
  for (const GgufTensor& tensor : file.tensors())
    sums.add({}, std::string(gguf_type_info(tensor.type).name), tensor.bytes);
  return sums;
}

}  // namespace

std::string gguf_text(const GgufFile& file) {
  Sums kinds;
  uint64_t bytes = 0;
  for (const GgufTensor& tensor : file.tensors()) {
    kinds.add(without_numbers(tensor.name), type_text(tensor), tensor.bytes);
    bytes += tensor.bytes;
  }
  const std::string name = std::filesystem::path(file.files().front()).filename().string();
  std::string text =
      fmt::format("{}: GGUF {}, {}, {}, {}\n\n", printable(name), file.version(),
                  counted(file.files().size(), "file"), counted(file.tensors().size(), "tensor"),
                  with_unit(static_cast<double>(bytes), "B"));
  TextTable keys("ll");
  for (const auto& [key, value] : file.metadata()) keys.add({printable(key), to_string(value)});
  text += keys.str() + '\n';
  TextTable types("lrr");
  types.add({"type", "tensors", "bytes"});
  for (const Sums sums = sums_by_type(file); const Sum& sum : sums.all())
    types.add(
        {sum.type, std::to_string(sum.count), with_unit(static_cast<double>(sum.bytes), "B")});
  text += types.str() + '\n';
  TextTable tensors("lrlr");
  tensors.add({"tensor", "count", "type", "bytes"});
  for (const Sum& sum : kinds.all())
    tensors.add({printable(sum.name), std::to_string(sum.count), sum.type,
                 with_unit(static_cast<double>(sum.bytes), "B")});
  return text + tensors.str();
}

std::string gguf_json(const GgufFile& file) {
  Json metadata = Json::object(), tensors = Json::array(), types = Json::object();
  for (const auto& [key, value] : file.metadata())
    metadata[key] = std::visit(
        [](const auto& x) -> Json {
          using T = std::decay_t<decltype(x)>;
          if constexpr (std::is_same_v<T, GgufNumbers>)
            return {{"elements", to_string(x.type())}, {"count", x.size()}};
          else if constexpr (std::is_same_v<T, GgufStrings>)
            return {{"elements", "string"}, {"count", x.size()}};
          else
            return x;
        },
        value);
  for (const GgufTensor& tensor : file.tensors())
    tensors.push_back({{"name", tensor.name},
                       {"type", gguf_type_info(tensor.type).name},
                       {"dims", tensor.dims},
                       {"bytes", tensor.bytes},
                       {"file", tensor.file}});
  for (const Sums sums = sums_by_type(file); const Sum& sum : sums.all())
    types[sum.type] = {{"tensors", sum.count}, {"bytes", sum.bytes}};
  const Json json = {{"format", "gguf"},      {"version", file.version()},
                     {"files", file.files()}, {"metadata", metadata},
                     {"types", types},        {"tensors", tensors}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace sinter
