// The answers of `--why` about the values that a page shows, as JSON without repetitions.
#pragma once

#include <llvm/ADT/StringMap.h>

#include <nlohmann/json.hpp>

#include "driver/explain/why.h"

namespace sinter {

/// Texts that many records share: a record has the text's number.
class PageTexts {
 public:
  /// 0: the empty text.
  size_t number(const std::string& text);
  const nlohmann::ordered_json& json() const { return list_; }

 private:
  llvm::StringMap<size_t> known_;
  nlohmann::ordered_json list_ = nlohmann::ordered_json::array({""});
};

/// Does a page store answers about all pairs of this many values of an entry? Of more it stores
/// those that the fusion engine asked about and values of which one reads the other, as many as
/// there are ops and edges, and makes the others when they are asked for.
constexpr bool has_all_answers(size_t values) { return values <= 120; }

/// A list of answers about values of an entry, ascending in the graph. An answer is [i, j, reason,
/// detail, change, path, path text, first refusal, fusion] without zeros at its end: the two values
/// by their numbers in `values`, i < j; texts by number; `path` the numbers of the shown values on
/// it; a first refusal [a, b, reason, detail, change]; a fusion by its place among the entry's,
/// from 1. `shown` gives the number in `values` of any value of the graph, or of the one that
/// stands in its place.
nlohmann::ordered_json page_answers(const WhyAnswers& answers, const Compiled& compiled,
                                    size_t entry, const std::vector<ValueId>& values,
                                    const llvm::StringMap<size_t>& shown, PageTexts& texts);

}  // namespace sinter
