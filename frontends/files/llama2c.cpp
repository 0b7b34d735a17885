#include "frontends/files/llama2c.h"

#include <fmt/format.h>
#include <llvm/Support/CheckedArithmetic.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

namespace sinter {
namespace {

constexpr uint32_t magic = 0x616b3432;  // "ak42"
constexpr uint64_t v0_header_bytes = 28;
constexpr uint64_t v1_header_bytes = 256;
constexpr std::string_view layer_prefix = "model.layers.";

struct Field {
  const char* name;
  int64_t Llama2cHeader::*member;
};
constexpr std::array<Field, 7> fields{{{"dim", &Llama2cHeader::dim},
                                       {"hidden_dim", &Llama2cHeader::hidden_dim},
                                       {"n_layers", &Llama2cHeader::n_layers},
                                       {"n_heads", &Llama2cHeader::n_heads},
                                       {"n_kv_heads", &Llama2cHeader::n_kv_heads},
                                       {"vocab_size", &Llama2cHeader::vocab_size},
                                       {"seq_len", &Llama2cHeader::seq_len}}};

template <typename T>
T load(std::span<const std::byte> bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

Status check(const Llama2cHeader& h, const std::string& path) {
  constexpr const char* hint = "check that this is a llama2.c checkpoint";
  for (const Field& field : fields)
    if (h.*field.member < 1 || h.*field.member > INT32_MAX)
      return fail(fmt::format("header field {}: expected 1 to {}, got {}", field.name, INT32_MAX,
                              h.*field.member),
                  path, hint);
  if (h.dim % h.n_heads != 0)
    return fail(fmt::format("header: dim {} is not divisible by n_heads {}", h.dim, h.n_heads),
                path, hint);
  if (h.n_kv_heads > h.n_heads || h.n_heads % h.n_kv_heads != 0)
    return fail(
        fmt::format("header: n_kv_heads {} does not divide n_heads {}", h.n_kv_heads, h.n_heads),
        path, hint);
  if (h.head_size() % 2 != 0)
    return fail(fmt::format("header: the head size {} (dim {} / n_heads {}) is odd, rotary "
                            "positions need an even one",
                            h.head_size(), h.dim, h.n_heads),
                path, hint);
  return {};
}

Result<Llama2cHeader> read_header(const BoundedFile& file) {
  const std::string& path = file.path();
  std::array<std::byte, v1_header_bytes> bytes{};
  const uint64_t available = std::min<uint64_t>(file.size(), bytes.size());
  SINTER_TRY(file.read(0, std::span(bytes).first(available)));
  Llama2cHeader header;
  const bool is_versioned = available >= 4 && load<uint32_t>(bytes, 0) == magic;
  const uint64_t wanted = is_versioned ? v1_header_bytes : v0_header_bytes;
  if (available < wanted)
    return fail(fmt::format("a llama2.c header has {} bytes, the file only {}", wanted, available),
                path, "check that this is a llama2.c checkpoint");
  if (is_versioned) {
    const int32_t version = load<int32_t>(bytes, 4);
    if (version != 1)
      return fail(fmt::format("llama2.c format version {}{}; versions 0 and 1 are read", version,
                              version == 2 ? " (quantized)" : ""),
                  path, "export the model with version 0 or 1");
    header.version = version;
  }
  for (size_t i = 0; i < fields.size(); ++i)
    header.*fields[i].member = load<int32_t>(bytes, (is_versioned ? 8 : 0) + 4 * i);
  if (is_versioned) {
    const unsigned shared = load<uint8_t>(bytes, 36);
    if (shared > 1)
      return fail(fmt::format("header field shared_classifier: expected 0 or 1, got {}", shared),
                  path, "check that this is a llama2.c checkpoint");
    header.shared_classifier = shared == 1;
  } else if (header.vocab_size < 0) {  // how version 0 says that the classifier is its own
    header.shared_classifier = false;
    header.vocab_size = -header.vocab_size;  // of 64 bits: no overflow
  }
  SINTER_TRY(check(header, path));
  return header;
}

}  // namespace

uint64_t Llama2cFile::Section::bytes() const {
  return static_cast<uint64_t>(std::max<int64_t>(rows, 1)) * static_cast<uint64_t>(columns) * 4;
}

Result<Llama2cFile> Llama2cFile::open(const std::string& path) {
  SINTER_LET(bounded, BoundedFile::open(path));
  SINTER_TRY(refuse_impostor(bounded));
  SINTER_LET(header, read_header(bounded));
  Llama2cFile file(std::move(bounded));
  file.header_ = header;
  const Llama2cHeader& h = header;

  const Section embedding{"model.embed_tokens.weight", false, h.vocab_size, h.dim};
  const Section attention_norm{"input_layernorm.weight", true, 0, h.dim};
  const Section ffn_norm{"post_attention_layernorm.weight", true, 0, h.dim};
  const Section final_norm{"model.norm.weight", false, 0, h.dim};
  const Section q{"self_attn.q_proj.weight", true, h.dim, h.dim};
  const Section k{"self_attn.k_proj.weight", true, h.kv_dim(), h.dim};
  const Section v{"self_attn.v_proj.weight", true, h.kv_dim(), h.dim};
  const Section o{"self_attn.o_proj.weight", true, h.dim, h.dim};
  const Section gate{"mlp.gate_proj.weight", true, h.hidden_dim, h.dim};
  const Section down{"mlp.down_proj.weight", true, h.dim, h.hidden_dim};
  const Section up{"mlp.up_proj.weight", true, h.hidden_dim, h.dim};
  // Cosines and sines, which the program computes itself; no tensor has the empty name.
  const Section rotary{"", false, h.seq_len, h.head_size()};
  const Section classifier{"lm_head.weight", false, h.vocab_size, h.dim};

  if (h.version == 0)
    file.sections_ = {embedding, attention_norm, q,    k,  v,          o,
                      ffn_norm,  gate,           down, up, final_norm, rotary};
  else
    file.sections_ = {attention_norm, ffn_norm, final_norm, embedding, q, k, v, o, gate, down, up};
  if (!h.shared_classifier) file.sections_.push_back(classifier);

  std::optional<int64_t> reached = h.version == 0 ? v0_header_bytes : v1_header_bytes;
  for (Section& section : file.sections_) {
    section.offset = static_cast<uint64_t>(*reached);
    // 2^31 * 2^31 * 4 leaves int64, so every product is checked.
    std::optional<int64_t> bytes = llvm::checkedMul<int64_t>(section.columns, 4);
    if (bytes) bytes = llvm::checkedMul<int64_t>(*bytes, std::max<int64_t>(section.rows, 1));
    if (bytes && section.per_layer) bytes = llvm::checkedMul(*bytes, h.n_layers);
    reached = bytes ? llvm::checkedAdd(*reached, *bytes) : std::nullopt;
    if (!reached)
      return fail(
          fmt::format("the header's sizes need more than 2^63 bytes (dim {}, hidden_dim {}, "
                      "n_layers {}, vocab_size {}), the file has {}",
                      h.dim, h.hidden_dim, h.n_layers, h.vocab_size, file.file_.size()),
          path, "check that this is a llama2.c checkpoint");
  }
  const uint64_t wanted = static_cast<uint64_t>(*reached), size = file.file_.size();
  if (wanted != size)
    return fail(fmt::format("the header's sizes need {} bytes, the file has {}: {} too {}", wanted,
                            size, wanted > size ? wanted - size : size - wanted,
                            wanted > size ? "few, it is truncated" : "many"),
                path, "check that this is a llama2.c checkpoint and download it again");
  return file;
}

std::optional<Llama2cFile::Place> Llama2cFile::locate(std::string_view name) const {
  int64_t layer = 0;
  const bool in_layer = name.starts_with(layer_prefix);
  if (in_layer) {
    name.remove_prefix(layer_prefix.size());
    auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), layer);
    // One spelling a layer: "+1", "01" and "-0" name nothing.
    const bool is_canonical = name.starts_with(fmt::format("{}.", layer));
    if (error != std::errc() || !is_canonical || layer < 0 || layer >= header_.n_layers)
      return std::nullopt;
    name.remove_prefix(static_cast<size_t>(end - name.data()) + 1);
  }
  for (const Section& section : sections_)
    if (section.name == name && section.per_layer == in_layer && !name.empty())
      return Place{&section, section.offset + static_cast<uint64_t>(layer) * section.bytes()};
  return std::nullopt;
}

std::optional<TensorType> Llama2cFile::find(std::string_view name) const {
  auto place = locate(name);
  if (!place) return std::nullopt;
  TensorType type{DType::f32, {}};
  if (place->section->rows > 0) type.dims.push_back(place->section->rows);
  type.dims.push_back(place->section->columns);
  return type;
}

Status Llama2cFile::read(std::string_view name, std::span<std::byte> out) const {
  auto place = locate(name);
  if (!place) return tl::make_unexpected(missing(name));
  SINTER_CHECK(out.size() == place->section->bytes(), "{} bytes for {}", out.size(),
               place->section->bytes());
  return file_.read(place->offset, out);
}

}  // namespace sinter
