#include "driver/verify/text_calls.h"

#include <algorithm>

#include "driver/embed/encode.h"
#include "driver/text_table.h"

namespace sinter {
namespace {

/// Whether the caches of all these texts fit R; an encoder has none.
bool caches_fit(llvm::ArrayRef<Symbol> symbols, TextList texts) {
  const int rows = find_symbol(symbols, "R");
  if (rows < 0) return true;
  size_t longest = 0;
  for (const auto& text : texts) longest = std::max(longest, text.size());
  const auto count = static_cast<int64_t>(texts.size());
  return count * sequence_rows(symbols, count, static_cast<int64_t>(longest)) <=
         symbols[static_cast<size_t>(rows)].high;
}

}  // namespace

Result<std::vector<TextList>> text_calls(const ModelSpec& spec, llvm::ArrayRef<Symbol> symbols,
                                         TextList texts, std::string_view place, bool invariant) {
  for (size_t i = 0; i < texts.size(); ++i)
    if (texts[i].empty() || static_cast<int64_t>(texts[i].size()) > spec.max_positions)
      return fail(fmt::format("text {} has {}, the model takes 1 to {}", i + 1,
                              counted(texts[i].size(), "token"), spec.max_positions),
                  std::string(place), "give texts that fit the model's context");
  std::vector<TextList> calls;
  while (!texts.empty()) {
    size_t count = 1;
    auto tokens = static_cast<int64_t>(texts[0].size());
    for (; count < texts.size(); ++count) {
      const auto length = static_cast<int64_t>(texts[count].size());
      tokens = text_begin(tokens, length, invariant && spec.encoder) + length;
      if (tokens > spec.max_positions || !caches_fit(symbols, texts.take_front(count + 1))) break;
    }
    calls.push_back(texts.take_front(count));
    texts = texts.drop_front(count);
  }
  return calls;
}

HostTensor joined_rows(llvm::ArrayRef<const HostTensor*> tensors) {
  HostTensor all = *tensors.front();
  for (const HostTensor* tensor : tensors.drop_front()) {
    all.dims[0] += tensor->dims[0];
    all.bytes.insert(all.bytes.end(), tensor->bytes.begin(), tensor->bytes.end());
  }
  return all;
}

HostTensor joined_outputs(llvm::ArrayRef<RunResult> calls) {
  std::vector<const HostTensor*> outputs;
  for (const RunResult& call : calls) outputs.push_back(&call.outputs[0]);
  return joined_rows(outputs);
}

}  // namespace sinter
