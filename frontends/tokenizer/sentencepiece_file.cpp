#include "frontends/tokenizer/sentencepiece_file.h"

#include <cmath>
#include <cstring>
#include <optional>

#include "frontends/files/bounded_file.h"
#include "frontends/files/json.h"
#include "frontends/tokenizer/decoder.h"
#include "frontends/tokenizer/vocabulary.h"

namespace sinter {
namespace {

constexpr uint64_t kMaxModelFileBytes = 64 << 20;
constexpr const char* hint = "download the tokenizer again";

/// The fields of a message of protocol buffers, one after the other.
class Message {
 public:
  explicit Message(std::string_view bytes) : bytes_(bytes) {}

  struct Field {
    uint64_t number = 0;
    uint64_t value = 0;      // of a varint or of fixed bytes
    std::string_view bytes;  // of a string or message
    bool is_bytes = false;
  };
  /// Nothing at the end.
  Result<std::optional<Field>> next() {
    if (bytes_.empty()) return std::nullopt;
    SINTER_LET(key, varint());
    Field field{key >> 3, 0, {}, false};
    switch (key & 7) {
      case 0: {
        SINTER_LET(value, varint());
        field.value = value;
        return field;
      }
      case 1:
        return fixed(field, 8);
      case 5:
        return fixed(field, 4);
      case 2: {
        SINTER_LET(size, varint());
        field.is_bytes = true;
        SINTER_LET(taken, take(size));
        field.bytes = taken;
        return field;
      }
      default:
        return broken();
    }
  }

 private:
  static tl::unexpected<Error> broken() {
    return fail("not a SentencePiece model: no protocol buffer, or cut short");
  }
  Result<std::string_view> take(uint64_t size) {
    if (size > bytes_.size()) return broken();
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }
  Result<uint64_t> varint() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      SINTER_LET(byte, take(1));
      value |= static_cast<uint64_t>(byte[0] & 0x7f) << shift;
      if (!(byte[0] & 0x80)) return value;
    }
    return broken();
  }
  Result<std::optional<Field>> fixed(Field field, size_t size) {
    SINTER_LET(taken, take(size));
    std::memcpy(&field.value, taken.data(), size);
    return field;
  }

  std::string_view bytes_;
};

/// Calls `use(field)` for every field of a message.
template <typename Use>
Status each_field(std::string_view bytes, const Use& use) {
  Message message(bytes);
  for (;;) {
    SINTER_LET(field, message.next());
    if (!field) return {};
    use(*field);
  }
}

/// A 32-bit integer, which a varint holds with its sign extended.
int32_t signed_value(const Message::Field& field) { return static_cast<int32_t>(field.value); }

Status read_piece(std::string_view bytes, SentencePieceModel::Piece& piece) {
  return each_field(bytes, [&](const Message::Field& field) {
    const auto low = static_cast<uint32_t>(field.value);
    if (field.number == 1) piece.text = field.bytes;
    if (field.number == 2) std::memcpy(&piece.score, &low, sizeof piece.score);
    if (field.number == 3) piece.type = static_cast<SentencePieceModel::Type>(low);
  });
}

Status read_trainer(std::string_view bytes, SentencePieceModel& model) {
  return each_field(bytes, [&](const Message::Field& field) {
    if (field.number == 3)
      model.algorithm = static_cast<SentencePieceModel::Algorithm>(signed_value(field));
    if (field.number == 24) model.spaces_as_suffix = field.value != 0;
    if (field.number == 35) model.byte_fallback = field.value != 0;
    if (field.number == 41) model.bos = signed_value(field);
    if (field.number == 44) model.unknown_text = field.bytes;
  });
}

Status read_normalizer(std::string_view bytes, SentencePieceModel& model) {
  return each_field(bytes, [&](const Message::Field& field) {
    if (field.number == 2) model.character_map = field.bytes;
    if (field.number == 3) model.add_dummy_prefix = field.value != 0;
    if (field.number == 4) model.remove_extra_whitespaces = field.value != 0;
    if (field.number == 5) model.escape_whitespaces = field.value != 0;
  });
}

Status read_model(std::string_view bytes, SentencePieceModel& model) {
  Message message(bytes);
  bool has_trainer = false, has_normalizer = false;
  for (;;) {
    SINTER_LET(field, message.next());
    if (!field) break;
    if (field->number == 1) {
      if (model.pieces.size() == Vocabulary::max_ids)
        return fail(fmt::format("more than {} pieces", Vocabulary::max_ids));
      SINTER_TRY(read_piece(field->bytes, model.pieces.emplace_back()));
    }
    if (field->number == 2) {
      SINTER_TRY(read_trainer(field->bytes, model));
      has_trainer = true;
    }
    if (field->number == 3) {
      SINTER_TRY(read_normalizer(field->bytes, model));
      has_normalizer = true;
    }
    if (field->number == 5) {
      SentencePieceModel denormalizer;
      SINTER_TRY(read_normalizer(field->bytes, denormalizer));
      model.has_denormalizer = !denormalizer.character_map.empty();
    }
  }
  // Always written. Without them the defaults would stand in.
  if (!has_trainer || !has_normalizer)
    return fail("not a SentencePiece model: no settings of trainer and normalizer, or cut short");
  return {};
}

Status check_pieces(const SentencePieceModel& model) {
  using Type = SentencePieceModel::Type;
  size_t unknown = 0, bytes = 0;
  for (size_t id = 0; id < model.pieces.size(); ++id) {
    const SentencePieceModel::Piece& piece = model.pieces[id];
    const auto bad = [&](std::string_view what) {
      return fail(fmt::format("piece {} (\"{}\") {}", id, printable(piece.text, 60), what));
    };
    if (piece.text.empty()) return bad("is empty");
    if (!is_utf8(piece.text)) return bad("is not UTF-8");
    if (!std::isfinite(piece.score)) return bad("has a score that is no number");
    if (piece.type < Type::normal || piece.type > Type::byte) return bad("has an unknown type");
    const bool is_byte = piece.type == Type::byte;
    if (is_byte != byte_of_piece(piece.text).has_value())
      return bad(is_byte ? "is a byte, but not written as one" : "is written as a byte");
    bytes += is_byte;
    unknown += piece.type == Type::unknown;
  }
  if (!is_utf8(model.unknown_text)) return fail("the text of unknown pieces is not UTF-8");
  if (unknown != 1) return fail(fmt::format("expected one unknown piece, got {}", unknown));
  if (model.byte_fallback && bytes != 256)
    return fail(fmt::format("expected 256 byte pieces, got {}", bytes));
  return {};
}

}  // namespace

Result<SentencePieceModel> read_sentencepiece_model(const std::string& path) {
  SINTER_LET(file, BoundedFile::open(path));
  SINTER_TRY(refuse_impostor(file));
  SINTER_LET(bytes, file.read_all(kMaxModelFileBytes));
  SentencePieceModel model;
  Status status = read_model(bytes, model);
  if (status) status = check_pieces(model);
  if (!status) return fail(status.error().what, path, hint);
  return model;
}

}  // namespace sinter
