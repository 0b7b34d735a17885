// Byte-pair encoding of SentencePiece: two neighbours merge if together they spell a piece, the
// best score first.
#pragma once

#include <string_view>
#include <vector>

#include "frontends/tokenizer/merges.h"
#include "frontends/tokenizer/trie.h"

namespace sinter {

/// The merges of `pieces`: every way to cut one of them into two of `symbols` (which the pieces
/// are among). `scores` has one for each piece, none NaN. Linear in the bytes of the pieces. Ids
/// of symbols are in [0, ids).
MergeTable merges_by_score(const std::vector<Trie::Entry>& pieces, const std::vector<float>& scores,
                           const std::vector<Trie::Entry>& symbols, int32_t ids);

}  // namespace sinter
