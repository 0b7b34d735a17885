// The text of a language model: alone in one call; token by token; cut into calls; among other
// sequences that come, go and grow beside it.
#include <algorithm>
#include <numeric>
#include <set>

#include "driver/verify/invariant_parts.h"

namespace sinter {
namespace {

using Texts = std::vector<std::vector<int32_t>>;

constexpr int64_t kLeastTokens = 24;
constexpr int64_t kReadings = 24;  // of the text, about, among neighbours of its size
constexpr int64_t kMaxDecoded = 192, kFirstPrompt = 4, kDecodedAmong = 32;
// Tokens of a neighbour in the first call of two runs that are otherwise alike: FlashAttention 3
// changes its tiles between them (vLLM issue 51902).
constexpr int64_t kNeighbourTokens[] = {9, 10};

/// Sequences of which one, in `place`, is the text.
struct Reading {
  Texts texts = {};
  size_t place = 0;
  std::vector<int64_t> calls;  // tokens of the text in each prefill; decoding follows
  int64_t neighbour = 0;       // tokens of the first neighbour in the first call
  bool used = false;           // other texts have been in all places
};

class DecoderWays {
 public:
  explicit DecoderWays(InvarianceCheck& check) : check_(check) {}

  Status run() {
    const int64_t tokens = std::min({check_.most_tokens, check_.spec.max_positions,
                                     std::max(check_.work / kReadings, kLeastTokens)});
    check_.report.texts = {tokens};
    text_ = check_.text(tokens);
    check_.options.stage("the text alone");
    SINTER_TRY(read({.texts = {text_}, .calls = {tokens}}, nullptr));
    SINTER_TRY(check_.check_finite(alone_));
    const int64_t prompt = std::max(std::min(tokens, kFirstPrompt), tokens - kMaxDecoded);
    SINTER_TRY(read({.texts = {text_}, .calls = {prompt}}, &check_.way("token by token")));
    for (int run = 0; run < 3; ++run)
      SINTER_TRY(read({.texts = {text_}, .calls = cuts(tokens)}, &check_.way("cut into calls")));
    const int64_t most = symbol("B").high;
    for (const int64_t sequences : std::set<int64_t>{2, 3, 8, most}) {
      if (sequences < 2 || sequences > most) continue;
      if (sequences > 2 && sequences * kLeastTokens > check_.work) {
        check_.report.left_out =
            fmt::format("{} sequences and more: too much work for the CPU", sequences);
        break;
      }
      SINTER_TRY(read_among(sequences));
    }
    return {};
  }

 private:
  const Symbol& symbol(std::string_view name) const {
    const auto& symbols = check_.program().symbols;
    return symbols[static_cast<size_t>(find_symbol(symbols, name))];
  }
  void set(std::vector<int64_t>& values, std::string_view name, int64_t value) const {
    values[static_cast<size_t>(find_symbol(check_.program().symbols, name))] = value;
  }

  /// Drawn sizes of calls that have `tokens` tokens together.
  std::vector<int64_t> cuts(int64_t tokens) {
    constexpr int64_t kEdges[] = {1, 2, 7, 8, 9, 16, 17, 63, 64, 65, 128, 129};
    std::vector<int64_t> sizes;
    for (int64_t left = tokens; left > 0; left -= sizes.back()) {
      const int64_t edge = kEdges[check_.draw(0, std::size(kEdges) - 1)],
                    any = check_.draw(1, std::max<int64_t>(tokens / 2, 1));
      sizes.push_back(std::min(left, check_.draw(0, 1) ? edge : any));
    }
    return sizes;
  }

  /// Two sets of neighbours. The first is read twice, with another number of a neighbour's tokens;
  /// the second in places that others have left.
  Status read_among(int64_t sequences) {
    const auto tokens = static_cast<int64_t>(text_.size());
    const int64_t longest =
        std::clamp<int64_t>((check_.on_gpu() ? 4 : 2) * tokens / sequences, 1, tokens);
    InvariantWay& way = check_.way(fmt::format("among {} sequences", sequences));
    for (const bool used : {false, true}) {
      Reading reading{.calls = cuts(tokens - std::min(tokens / 2, kDecodedAmong)), .used = used};
      reading.place = static_cast<size_t>(check_.draw(0, sequences - 1));
      for (size_t s = 0; s < static_cast<size_t>(sequences); ++s)
        reading.texts.push_back(
            s == reading.place ? text_
            : s == first_neighbour(reading)
                ? check_.text(std::clamp<int64_t>(longest, std::min<int64_t>(16, tokens), tokens))
                : check_.text(check_.draw(1, longest)));
      const std::mt19937_64 bits = check_.bits;
      for (const int64_t neighbour : kNeighbourTokens) {
        if (used && neighbour != kNeighbourTokens[0]) continue;
        check_.bits = bits;
        reading.neighbour = neighbour;
        SINTER_TRY(read(reading, &way));
      }
    }
    return {};
  }

  static size_t first_neighbour(const Reading& reading) { return reading.place == 0 ? 1 : 0; }

  /// Compares each call's logits of the text. No way: they are what others are compared with.
  Status read(const Reading& reading, InvariantWay* way) {
    const llvm::ArrayRef<Symbol> symbols = check_.program().symbols;
    const auto sequences = static_cast<int64_t>(reading.texts.size());
    const int64_t rows = sequence_rows(symbols, sequences, static_cast<int64_t>(text_.size()));
    std::vector<int64_t> values = min_symbol_values(symbols);
    set(values, "R", sequences * rows);
    SINTER_LET(session, check_.executable.new_session(values));
    if (reading.used) {
      Texts others;
      const int64_t each =
          std::min<int64_t>(static_cast<int64_t>(text_.size()), symbol("N").high / sequences);
      for (int64_t s = 0; s < sequences; ++s) others.push_back(check_.text(each));
      const DecoderCall call =
          pack_sequences("prefill", symbols, others, std::vector<int64_t>(others.size(), 0), rows,
                         Wanted::last_of_each);
      SINTER_TRY(session->run("prefill", call.symbol_values, addresses_of(call.inputs),
                              check_.poisoned()));
    }
    std::vector<int64_t> lengths(reading.texts.size(), 0);
    for (size_t call = 0; lengths[reading.place] < static_cast<int64_t>(text_.size()); ++call)
      SINTER_TRY(read_call(reading, call, rows, *session, lengths, way));
    return {};
  }

  /// The tokens of each sequence in a call; a neighbour takes a drawn number of its tokens.
  Texts tokens_of_call(const Reading& reading, size_t call, llvm::ArrayRef<int64_t> lengths) {
    const bool decodes = call >= reading.calls.size();
    const int64_t own = decodes ? 1 : reading.calls[call];
    int64_t room = symbol("N").high - own;
    Texts lists;
    for (size_t s = 0; s < reading.texts.size(); ++s) {
      const auto& text = reading.texts[s];
      const int64_t left = static_cast<int64_t>(text.size()) - lengths[s];
      int64_t count = own;
      if (s != reading.place) {
        const int64_t drawn =
            decodes ? std::min<int64_t>(check_.draw(0, 3), 1) : check_.draw(0, left);
        const bool is_first = call == 0 && !decodes && s == first_neighbour(reading);
        count = std::min({left, room, is_first ? reading.neighbour : drawn});
        room -= count;
      }
      const auto begin = text.begin() + lengths[s];
      lists.emplace_back(begin, begin + count);
    }
    return lists;
  }

  Status read_call(const Reading& reading, size_t number, int64_t rows, Session& session,
                   std::vector<int64_t>& lengths, InvariantWay* way) {
    const bool decodes = number >= reading.calls.size();
    const std::string_view entry = decodes ? "decode" : "prefill";
    const Texts lists = tokens_of_call(reading, number, lengths);
    const auto own = static_cast<int64_t>(lists[reading.place].size());
    int64_t before = 0;
    for (size_t s = 0; s < reading.place; ++s) before += static_cast<int64_t>(lists[s].size());
    DecoderCall call =
        pack_sequences(entry, check_.program().symbols, lists, lengths, rows, Wanted::last_of_each);
    if (!decodes) {  // The logits of all tokens of the text, and of no other.
      std::vector<int32_t> wanted(static_cast<size_t>(own));
      std::iota(wanted.begin(), wanted.end(), static_cast<int32_t>(before));
      call.inputs.back() = i32_tensor(wanted);
      set(call.symbol_values, "M", own);
    }
    SINTER_LET(result, session.run(entry, call.symbol_values, addresses_of(call.inputs),
                                   check_.poisoned()));
    if (way) {
      ++way->calls;
      SINTER_TRY(compare_rows(result.outputs[0], decodes ? before : 0, alone_,
                              lengths[reading.place], own,
                              fmt::format("in a {} of {} of its tokens", entry, own), *way));
    } else {
      alone_ = std::move(result.outputs[0]);
    }
    for (size_t s = 0; s < lists.size(); ++s) lengths[s] += static_cast<int64_t>(lists[s].size());
    return {};
  }

  InvarianceCheck& check_;
  std::vector<int32_t> text_;
  HostTensor alone_;  // the text's logits
};

}  // namespace

Status check_decoder_ways(InvarianceCheck& check) { return DecoderWays(check).run(); }

}  // namespace sinter
