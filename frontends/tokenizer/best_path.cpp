#include "frontends/tokenizer/best_path.h"

#include <algorithm>
#include <limits>

#include "frontends/tokenizer/unicode.h"

namespace sinter {
namespace {

constexpr size_t unreached = std::numeric_limits<size_t>::max();

/// The best way to cut a word up to some place: where its last piece starts.
struct Path {
  size_t start = unreached;
  double score = 0;
  int32_t id = 0;
};

}  // namespace

std::optional<std::vector<PathPiece>> best_path(std::string_view word, const Trie& pieces,
                                                const UnigramScores& scores) {
  const auto rounded = [&](double sum) {
    return scores.single_precision ? static_cast<float>(sum) : sum;
  };
  std::vector<Path> best(word.size() + 1);
  const auto offer = [&](size_t start, size_t end, double score, int32_t id) {
    Path& path = best[end];
    const double sum = rounded(best[start].score + score);
    if (path.start == unreached || sum > path.score) path = {start, sum, id};
  };
  for (size_t at = 0; at < word.size();) {
    const size_t character = code_point_at(word, at).bytes;
    bool alone = false;  // the character is a piece
    Trie::Node node = Trie::root;
    for (size_t end = at; end < word.size();) {
      node = pieces.step(node, word[end]);
      if (node == Trie::nowhere) break;
      ++end;
      const int32_t id = pieces.id(node);
      if (id < 0) continue;
      offer(at, end, scores.pieces[static_cast<size_t>(id)], id);
      alone = alone || end - at == character;
    }
    if (!alone) {
      if (!scores.id) return std::nullopt;
      offer(at, at + character, scores.unknown, *scores.id);
    }
    at += character;
  }
  std::vector<PathPiece> path;
  for (size_t end = word.size(); end > 0; end = best[end].start)
    path.push_back({end, best[end].id});
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace sinter
