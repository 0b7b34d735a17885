#include "frontends/gguf/gguf_file.h"

#include <llvm/ADT/STLExtras.h>

#include "frontends/gguf/gguf_header.h"
#include "ir/characters.h"

namespace sinter {
namespace {

constexpr size_t kSplitDigits = 5;  // of a number in the name of a split file
constexpr int64_t kMaxFiles = 1024;

/// NAME-00002-of-00003.gguf: "NAME", 2, 3.
struct SplitName {
  std::string stem;
  int64_t number, count;

  std::string file(int64_t i) const {
    return fmt::format("{}-{:05}-of-{:05}.gguf", stem, i, count);
  }
};

/// The number in the last digits of `text`, which are taken from it; -1: there are none.
int64_t take_number(std::string& text) {
  if (text.size() < kSplitDigits) return -1;
  int64_t number = 0;
  for (size_t i = text.size() - kSplitDigits; i < text.size(); ++i) {
    if (!is_digit(text[i])) return -1;
    number = 10 * number + (text[i] - '0');
  }
  text.resize(text.size() - kSplitDigits);
  return number;
}

bool take_ending(std::string& text, std::string_view ending) {
  if (!std::string_view(text).ends_with(ending)) return false;
  text.resize(text.size() - ending.size());
  return true;
}

std::optional<SplitName> split_name(const std::string& path) {
  SplitName name{path, 0, 0};
  if (!take_ending(name.stem, ".gguf")) return std::nullopt;
  name.count = take_number(name.stem);
  if (name.count < 1 || name.count > kMaxFiles || !take_ending(name.stem, "-of-"))
    return std::nullopt;
  name.number = take_number(name.stem);
  if (name.number < 1 || name.number > name.count || !take_ending(name.stem, "-"))
    return std::nullopt;
  return name;
}

/// The integer of a key; `otherwise` where the file lacks it.
int64_t integer_of(const GgufHeader& header, std::string_view key, int64_t otherwise) {
  const auto found = header.metadata.find(key);
  const int64_t* value =
      found == header.metadata.end() ? nullptr : std::get_if<int64_t>(&found->second);
  return value ? *value : otherwise;
}

}  // namespace

Result<GgufFile> GgufFile::open(const std::string& path) {
  GgufFile result;
  const std::optional<SplitName> split = split_name(path);
  const int64_t count = split ? split->count : 1;
  int64_t stated = -1;
  for (int64_t i = 1; i <= count; ++i) {
    const std::string name = split ? split->file(i) : path;
    SINTER_LET(file, BoundedFile::open(name));
    SINTER_LET(header, read_gguf_header(file));
    const int64_t number = integer_of(header, "split.no", 0);
    const int64_t files = integer_of(header, "split.count", split ? 0 : 1);
    if (files != count || number != i - 1)
      return fail(fmt::format("split.no is {} and split.count {}, expected {} and {} by the name",
                              number, files, i - 1, count),
                  name, "give the files of a split model their names back");
    for (GgufTensor& tensor : header.tensors) {
      tensor.file = static_cast<uint32_t>(i - 1);
      result.tensors_.push_back(std::move(tensor));
    }
    if (i == 1) {
      stated = integer_of(header, "split.tensors.count", -1);
      result.version_ = header.version;
      result.metadata_ = std::move(header.metadata);
    }
    result.files_.push_back(std::move(file));
  }
  const auto tensors = static_cast<int64_t>(result.tensors_.size());
  if (stated >= 0 && stated != tensors)
    return fail(
        fmt::format("split.tensors.count is {}, and the files have {} tensors", stated, tensors),
        path, "download the files again");
  SINTER_TRY(result.check_names());
  return result;
}

Status GgufFile::check_names() const {
  std::vector<const GgufTensor*> sorted;
  for (const GgufTensor& tensor : tensors_) sorted.push_back(&tensor);
  llvm::sort(sorted, [](const auto* a, const auto* b) { return a->name < b->name; });
  for (size_t i = 1; i < sorted.size(); ++i)
    if (sorted[i - 1]->name == sorted[i]->name)
      return fail(fmt::format("the tensor {} is stored twice", printable(sorted[i]->name, 80)),
                  files_[sorted[i]->file].path(), "download the file again");
  return {};
}

const GgufValue* GgufFile::find(std::string_view key) const {
  const auto found = metadata_.find(key);
  return found == metadata_.end() ? nullptr : &found->second;
}

std::vector<std::string> GgufFile::files() const {
  std::vector<std::string> paths;
  for (const BoundedFile& file : files_) paths.push_back(file.path());
  return paths;
}

Status GgufFile::read(const GgufTensor& tensor, uint64_t begin, std::span<std::byte> out) const {
  SINTER_CHECK(begin <= tensor.bytes && out.size() <= tensor.bytes - begin, "{}", tensor.name);
  return files_[tensor.file].read(tensor.begin + begin, out);
}

std::string first_gguf_file(const std::string& path) {
  const std::optional<SplitName> split = split_name(path);
  return split ? split->file(1) : path;
}

}  // namespace sinter
