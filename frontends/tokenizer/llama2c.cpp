// tokenizer.bin of llama2.c: u32 longest piece in bytes, then for each id f32 score, i32 bytes, and
// the piece; little endian, up to the end of the file. A space stands for itself. Ids 1 and 2 are
// BOS and EOS, 3 to 258 the bytes <0x00> to <0xFF>.
#include <cmath>
#include <cstring>

#include "frontends/files/bounded_file.h"
#include "frontends/tokenizer/format.h"
#include "frontends/tokenizer/score_merges.h"
#include "frontends/tokenizer/unicode.h"
#include "frontends/tokenizer/vocabulary.h"

namespace sinter {
namespace {

constexpr uint64_t kMaxBinFileBytes = 16 << 20;  // 32,000 pieces take 0.4 MB
constexpr int32_t bos = 1, eos = 2, first_byte = 3;

/// A space after BOS, or at the start, is the one that encoding put there.
class Llama2cStage final : public WholeTokenStage {
 public:
  explicit Llama2cStage(std::string bos) : bos_(std::move(bos)) {}
  DecoderStagePtr clone() const override { return std::make_unique<Llama2cStage>(*this); }
  Status finish(TokenSink sink) override { return give(true, sink); }

 protected:
  Status token(std::string_view token, TokenSink sink) override {
    if (const auto byte = byte_of_piece(token))
      pending_ += static_cast<char>(*byte);
    else
      pending_ += at_start_ && token.starts_with(' ') ? token.substr(1) : token;
    at_start_ = token == bos_;
    return give(false, sink);
  }

 private:
  Status give(bool last, TokenSink sink) {
    std::string text;
    take_utf8(pending_, last, text);
    return sink(text, last);
  }

  std::string bos_;
  bool at_start_ = true;
  std::string pending_;  // the start of a character
};

struct Pieces {
  std::vector<Vocabulary::Entry> entries;
  std::vector<float> scores;
};

Result<Pieces> read_pieces(std::string_view file, const std::string& path) {
  Pieces pieces;
  constexpr std::string_view hint = "give llama2.c's tokenizer.bin, or export it again";
  const auto bad = [&](size_t at, std::string what) {
    return fail(std::move(what), fmt::format("{}: byte {}", path, at), std::string(hint));
  };
  size_t at = sizeof(uint32_t);
  if (file.size() < at) return bad(0, fmt::format("the file has {} bytes", file.size()));
  while (at < file.size()) {
    float score;
    int32_t bytes;
    const size_t start = at;
    const auto id = static_cast<int32_t>(pieces.entries.size());
    if (file.size() - at < sizeof score + sizeof bytes)
      return bad(start, fmt::format("piece {} is cut short", id));
    std::memcpy(&score, file.data() + at, sizeof score);
    std::memcpy(&bytes, file.data() + at + sizeof score, sizeof bytes);
    at += sizeof score + sizeof bytes;
    if (bytes < 0 || static_cast<size_t>(bytes) > file.size() - at)
      return bad(start, fmt::format("piece {} has {} bytes, {} are left in the file", id, bytes,
                                    file.size() - at));
    const std::string_view text = file.substr(at, static_cast<size_t>(bytes));
    at += text.size();
    if (std::isnan(score)) return bad(start, fmt::format("the score of piece {} is NaN", id));
    if (!is_utf8(text)) return bad(start, fmt::format("piece {} is not UTF-8", id));
    pieces.entries.push_back({std::string(text), id});
    pieces.scores.push_back(score);
  }
  for (int32_t id = first_byte; id < first_byte + 256; ++id) {
    const bool there = static_cast<size_t>(id) < pieces.entries.size();
    const std::string& piece = there ? pieces.entries[static_cast<size_t>(id)].piece : "";
    if (byte_of_piece(piece) != static_cast<uint8_t>(id - first_byte))
      return fail(fmt::format("expected piece {} to be <0x{:02X}>, got \"{}\"", id, id - first_byte,
                              printable(piece, 60)),
                  path, std::string(hint));
  }
  return pieces;
}

class Llama2cTokenizer final : public TokenizerFormat {
 public:
  Llama2cTokenizer(Vocabulary vocabulary, MergeTable merges)
      : vocabulary_(std::move(vocabulary)), merges_(std::move(merges)) {}

  Result<std::vector<int32_t>> encode(std::string_view text, bool add_special) const override {
    std::vector<int32_t> symbols;
    if (!text.empty())
      if (const auto space = vocabulary_.find(" ")) symbols.push_back(*space);
    for (size_t at = 0; at < text.size();) {
      const std::string_view character = text.substr(at, code_point_at(text, at).bytes);
      at += character.size();
      if (const auto id = vocabulary_.find(character)) {
        symbols.push_back(*id);
      } else {
        for (char byte : character) symbols.push_back(first_byte + static_cast<uint8_t>(byte));
      }
    }
    merges_.apply(symbols);
    if (add_special) symbols.insert(symbols.begin(), bos);
    return symbols;
  }

  int32_t vocabulary_size() const override { return vocabulary_.size(); }
  std::optional<int32_t> token_id(std::string_view piece) const override {
    return vocabulary_.find(piece);
  }
  std::optional<std::string_view> piece(int32_t id) const override { return vocabulary_.piece(id); }
  bool is_special(int32_t id) const override { return id == bos || id == eos; }
  DecoderChain decoder() const override {
    std::vector<DecoderStagePtr> stages;
    stages.push_back(std::make_unique<Llama2cStage>(std::string(*vocabulary_.piece(bos))));
    return DecoderChain(std::move(stages));
  }

 private:
  Vocabulary vocabulary_;
  MergeTable merges_;
};

}  // namespace

Result<TokenizerFormatPtr> open_tokenizer_llama2c(const std::string& path) {
  SINTER_LET(file, BoundedFile::open(path));
  SINTER_TRY(refuse_impostor(file));
  SINTER_LET(bytes, file.read_all(kMaxBinFileBytes));
  SINTER_LET(pieces, read_pieces(bytes, path));
  auto vocabulary = Vocabulary::create(pieces.entries);
  if (!vocabulary) return fail(vocabulary.error().what, path, "export the tokenizer again");
  std::vector<Trie::Entry> symbols;
  for (const Vocabulary::Entry& entry : pieces.entries) symbols.push_back({entry.piece, entry.id});
  MergeTable merges = merges_by_score(symbols, pieces.scores, symbols, vocabulary->size());
  return std::make_shared<Llama2cTokenizer>(std::move(*vocabulary), std::move(merges));
}

}  // namespace sinter
