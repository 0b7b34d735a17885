#include "frontends/gguf/gguf_tensors.h"

#include <cstring>
#include <set>

#include "frontends/gguf/gguf_blocks.h"
#include "frontends/gguf/gguf_metadata.h"
#include "ir/sym_expr.h"

namespace sinter {
namespace {

constexpr std::string_view kExperts = "_exps.weight";
constexpr int64_t kMaxExpertTensors = 1024;
constexpr int64_t kPieceBytes = int64_t{1} << 18;  // of a tensor, that are read at once

/// The type of elements that have no blocks.
std::optional<DType> plain_type(GgufType type) {
  switch (type) {
    case GgufType::F32:
      return DType::f32;
    case GgufType::F16:
      return DType::f16;
    case GgufType::BF16:
      return DType::bf16;
    default:
      return std::nullopt;
  }
}

DType given_type(const GgufTensor& tensor) { return plain_type(tensor.type).value_or(DType::f32); }

int64_t elements_of(llvm::ArrayRef<int64_t> dims) {
  int64_t count = 1;
  for (int64_t dim : dims) count *= dim;
  return count;
}

uint64_t bytes_of(GgufType type, int64_t elements) {
  const GgufTypeInfo& info = gguf_type_info(type);
  return static_cast<uint64_t>(elements / info.block_elements * info.block_bytes);
}

CodedTensor coded_form(GgufType type, llvm::ArrayRef<int64_t> dims) {
  CodedTensor coded;
  coded.set_extents(dims);
  coded.blocks = code_format_of(type);
  coded.scale = coded.blocks->scale;
  return coded;
}

/// The parts of a matrix that a file has.
struct PartName {
  std::string_view end;
  BlockPart part;
};
constexpr PartName kPartNames[] = {{".codes", BlockPart::codes},
                                   {".scales", BlockPart::scales},
                                   {".minima", BlockPart::minima},
                                   {".parts", BlockPart::parts}};

bool has_part(const CodedTensor& matrix, BlockPart part) {
  return (part != BlockPart::minima || matrix.has_minima()) &&
         (part != BlockPart::parts || matrix.has_parts());
}

TensorType type_of_part(const CodedTensor& matrix, BlockPart part) {
  if (part == BlockPart::codes) return matrix.codes_type();
  return part == BlockPart::parts ? matrix.parts_type() : matrix.scales_type();
}

/// A matrix by the name of one of its parts, and that part.
std::optional<std::pair<const CodedTensors::value_type*, BlockPart>> coded_part(
    const CodedTensors& coded, std::string_view name) {
  for (const auto& [end, part] : kPartNames) {
    if (!name.ends_with(end)) continue;
    const auto at = coded.find(name.substr(0, name.size() - end.size()));
    if (at != coded.end() && has_part(at->second, part)) return std::pair(&*at, part);
  }
  return std::nullopt;
}

/// Rows of q and k, and their biases.
std::string_view interleaved_heads(std::string_view name) {
  const auto is = [&](std::string_view end) { return name.ends_with(end); };
  if (is(".attn_q.weight") || is(".attn_q.bias")) return "attention.head_count";
  if (is(".attn_k.weight") || is(".attn_k.bias")) return "attention.head_count_kv";
  return {};
}

/// Puts rows in the order of the halves of a head: row j of half a is row 2j + a of the file.
void deinterleave_rows(std::span<const std::byte> stored, int64_t head, uint64_t row_bytes,
                       std::span<std::byte> out) {
  const int64_t rows = static_cast<int64_t>(out.size() / row_bytes);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t in_head = row % head, half = head / 2;
    const int64_t from = row - in_head + in_head % half * 2 + in_head / half;
    std::memcpy(out.data() + static_cast<uint64_t>(row) * row_bytes,
                stored.data() + static_cast<uint64_t>(from) * row_bytes, row_bytes);
  }
}

void subtract_one(std::vector<std::byte>& floats) {
  for (size_t at = 0; at < floats.size(); at += sizeof(float)) {
    float value;
    std::memcpy(&value, floats.data() + at, sizeof value);
    value -= 1.0F;
    std::memcpy(floats.data() + at, &value, sizeof value);
  }
}

}  // namespace

tl::unexpected<Error> GgufTensors::broken(const GgufTensor& tensor, std::string_view what,
                                          std::string hint) const {
  return fail(fmt::format("tensor {} {}", printable(tensor.name, 80), what),
              file_.files()[tensor.file], std::move(hint));
}

Result<std::shared_ptr<const GgufTensors>> GgufTensors::open(const std::string& path) {
  SINTER_LET(file, GgufFile::open(path));
  const std::shared_ptr<GgufTensors> made(new GgufTensors(std::move(file)));
  SINTER_LET(architecture, gguf_architecture(made->file_));
  made->architecture_ = architecture;
  for (const GgufTensor& tensor : made->file_.tensors())
    made->types_.emplace(tensor.name, tensor.type);
  for (const GgufTensor& tensor : made->file_.tensors()) SINTER_TRY(made->add(tensor));
  return std::shared_ptr<const GgufTensors>(made);
}

Status GgufTensors::add(const GgufTensor& tensor) {
  if (!plain_type(tensor.type) && !dequantize_of(tensor.type))
    return broken(
        tensor, fmt::format("is {}, which is not read", gguf_type_info(tensor.type).name),
        fmt::format("quantize the model to one of F32, F16, BF16, {}", dequantized_types()));
  Part part{&tensor, tensor.dims};
  part.minus_one = architecture_->plus_one && tensor.dims.size() == 1 &&
                   std::string_view(tensor.name).ends_with("norm.weight");
  if (part.minus_one && tensor.type != GgufType::F32)
    return broken(tensor, fmt::format("is {}, expected F32", gguf_type_info(tensor.type).name),
                  "convert the model again");
  if (architecture_->interleaved) SINTER_TRY(note_heads(part));
  const std::string_view name = tensor.name;
  if (tensor.dims.size() == 3 && name.ends_with(kExperts)) {
    if (tensor.dims[0] > kMaxExpertTensors)
      return broken(
          tensor,
          fmt::format("has {} experts, at most {} are read", tensor.dims[0], kMaxExpertTensors),
          "check that this is the right file");
    const std::string stem(name.substr(0, name.size() - std::string_view(".weight").size()));
    part.dims.erase(part.dims.begin());
    for (int64_t expert = 0; expert < tensor.dims[0]; ++expert) {
      part.first_row = expert * tensor.dims[1];
      SINTER_TRY(add_part(fmt::format("{}.{}.weight", stem, expert), part));
    }
    return {};
  }
  // One row, which the converter stores as a vector.
  if (name.ends_with(".ffn_gate_inp_shexp.weight") && part.dims.size() == 1)
    part.dims.insert(part.dims.begin(), 1);
  return add_part(tensor.name, std::move(part));
}

Status GgufTensors::add_part(std::string name, Part part) {
  const auto [at, is_new] = parts_.emplace(std::move(name), std::move(part));
  const auto& [own, added] = *at;
  if (!is_new)
    return broken(*added.tensor, "is stored twice, alone and among its experts",
                  "download the file again");
  if (added.dims.size() == 2 && is_coded(*added.tensor))
    coded_.emplace(own, coded_form(added.tensor->type, added.dims));
  return {};
}

/// Gate and up of experts are one weight, which has one form.
bool GgufTensors::is_coded(const GgufTensor& tensor) const {
  if (!code_format_of(tensor.type)) return false;
  const std::string_view name = tensor.name;
  const bool linear = name.find(".attn_") != name.npos || name.find(".ffn_") != name.npos;
  const bool table = name == "token_embd.weight" || name == "output.weight";
  if (tensor.dims.size() != (name.ends_with(kExperts) ? 3U : 2U) || !(linear || table) ||
      name.find("ffn_gate_inp") != name.npos ||
      tensor.dims[tensor.dims.size() - 2] > kLargestExtent || tensor.dims.back() > kLargestExtent)
    return false;
  const size_t gate = name.find("ffn_gate_exps"), up = name.find("ffn_up_exps");
  if (gate == name.npos && up == name.npos) return true;
  const std::string layer(name.substr(0, std::min(gate, up)));
  const auto has_type = [&](std::string_view part) {
    const auto other = types_.find(layer + std::string(part));
    return other == types_.end() || other->second == tensor.type;
  };
  return has_type("ffn_gate_exps.weight") && has_type("ffn_up_exps.weight");
}

Status GgufTensors::note_heads(Part& part) const {
  const std::string_view key = interleaved_heads(part.tensor->name);
  if (key.empty()) return {};
  const GgufMetadata metadata(file_, architecture_->name);
  SINTER_LET(all, metadata.integer_or("attention.head_count", 0));
  SINTER_LET(heads, metadata.integer_or(key, all));
  const int64_t rows = part.dims.front();
  if (heads <= 0 || rows % heads != 0 || rows / heads % 2 != 0)
    return broken(*part.tensor, fmt::format("has {} rows for {} heads", rows, heads),
                  "download the file again");
  part.head = rows / heads;
  if (part.dims.size() == 1 && !plain_type(part.tensor->type))
    return broken(*part.tensor, "is a quantized vector", "convert the model again");
  return {};
}

const GgufTensor* GgufTensors::tensor(std::string_view name) const {
  const auto at = parts_.find(name);
  return at == parts_.end() ? nullptr : at->second.tensor;
}

Result<std::vector<float>> GgufTensors::floats(std::string_view name) const {
  const auto at = parts_.find(name);
  if (at == parts_.end()) return tl::make_unexpected(missing(name));
  if (at->second.tensor->type != GgufType::F32)
    return broken(*at->second.tensor, "is not F32", "convert the model again");
  std::vector<float> values(static_cast<size_t>(elements_of(at->second.dims)));
  SINTER_TRY(read(name, std::as_writable_bytes(std::span(values))));
  return values;
}

std::string GgufTensors::quantized_note(DType dtype) const {
  std::set<std::string_view> types;
  uint64_t stored = 0, given = 0;
  for (const GgufTensor& tensor : file_.tensors()) {
    if (plain_type(tensor.type) || is_coded(tensor)) continue;
    types.insert(gguf_type_info(tensor.type).name);
    stored += tensor.bytes;
    given += static_cast<uint64_t>(elements_of(tensor.dims) * dtype_info(dtype).bits / 8);
  }
  if (types.empty()) return {};
  return fmt::format("{}: weights of {} are dequantized to {}: {} MB instead of {}",
                     file_.files().front(), fmt::join(types, ", "), to_string(dtype),
                     given / 1000000, stored / 1000000);
}

std::optional<TensorType> GgufTensors::find(std::string_view name) const {
  if (const auto part = coded_part(coded_, name))
    return type_of_part(part->first->second, part->second);
  const auto at = parts_.find(name);
  if (at == parts_.end() || coded_.contains(name)) return std::nullopt;
  TensorType type{given_type(*at->second.tensor), {}};
  for (int64_t dim : at->second.dims) type.dims.push_back(Dim(dim));
  return type;
}

std::vector<std::string> GgufTensors::names() const {
  std::vector<std::string> names;
  for (const auto& [name, part] : parts_) {
    const auto matrix = coded_.find(name);
    if (matrix == coded_.end()) {
      names.push_back(name);
      continue;
    }
    for (const auto& [end, of_matrix] : kPartNames)
      if (has_part(matrix->second, of_matrix)) names.push_back(name + std::string(end));
  }
  return names;
}

Status GgufTensors::check_scales(const Part& part, std::span<const std::byte> stored) const {
  const GgufType type = part.tensor->type;
  const auto bytes = static_cast<size_t>(gguf_type_info(type).block_bytes);
  for (size_t at = 0; at < stored.size(); at += bytes)
    if (has_invalid_scale(type, stored.data() + at))
      return broken(*part.tensor, "has a scale that is not a number", "convert the model again");
  return {};
}

void GgufTensors::dequantize(const Part& part, std::span<const std::byte> stored,
                             std::span<std::byte> out) const {
  const GgufTypeInfo& info = gguf_type_info(part.tensor->type);
  const Dequantize dequantize = dequantize_of(part.tensor->type);
  std::vector<float> block(static_cast<size_t>(info.block_elements));
  std::byte* to = out.data();
  for (size_t at = 0; at < stored.size(); at += static_cast<size_t>(info.block_bytes)) {
    dequantize(stored.data() + at, block.data());
    std::memcpy(to, block.data(), block.size() * sizeof(float));
    to += block.size() * sizeof(float);
  }
}

template <typename Take>
Status GgufTensors::for_rows(const Part& part, Take&& take) const {
  const GgufTensor& tensor = *part.tensor;
  const uint64_t begin = bytes_of(tensor.type, part.first_row * part.dims.back());
  const int64_t rows = part.dims.front();
  const uint64_t row_bytes =
      bytes_of(tensor.type, elements_of(part.dims)) / static_cast<uint64_t>(rows);
  const int64_t step = part.head != 0
                           ? part.head
                           : std::max<int64_t>(1, kPieceBytes / static_cast<int64_t>(row_bytes));
  std::vector<std::byte> stored, ordered;
  for (int64_t row = 0; row < rows; row += step) {
    const int64_t count = std::min(step, rows - row);
    stored.resize(static_cast<uint64_t>(count) * row_bytes);
    SINTER_TRY(file_.read(tensor, begin + static_cast<uint64_t>(row) * row_bytes, stored));
    if (part.head != 0) {
      ordered.resize(stored.size());
      deinterleave_rows(stored, part.head, row_bytes, ordered);
      stored.swap(ordered);
    }
    SINTER_TRY(take(stored, row, count));
  }
  return {};
}

Status GgufTensors::read(std::string_view name, std::span<std::byte> out) const {
  const auto coded = coded_part(coded_, name);
  const auto at = parts_.find(coded ? std::string_view(coded->first->first) : name);
  if (at == parts_.end()) return tl::make_unexpected(missing(name));
  const Part& part = at->second;
  const GgufType type = part.tensor->type;
  const bool plain = plain_type(type).has_value();
  if (plain && part.head == 0 && !part.minus_one)
    return file_.read(*part.tensor, bytes_of(type, part.first_row * part.dims.back()), out);
  if (coded) {
    const TensorType given = type_of_part(coded->first->second, coded->second);
    SINTER_CHECK(static_cast<int64_t>(out.size()) == storage_bytes(given).constant(), "{}", name);
  }
  const size_t row_bytes = out.size() / static_cast<size_t>(part.dims.front());
  return for_rows(part, [&](std::vector<std::byte>& stored, int64_t row, int64_t rows) -> Status {
    const auto to =
        out.subspan(static_cast<size_t>(row) * row_bytes, static_cast<size_t>(rows) * row_bytes);
    if (!plain) SINTER_TRY(check_scales(part, stored));
    if (part.minus_one) subtract_one(stored);
    if (coded)
      copy_part(type, coded->second, stored, to);
    else if (plain)
      std::memcpy(to.data(), stored.data(), to.size());
    else
      dequantize(part, stored, to);
    return {};
  });
}

}  // namespace sinter
