#include "frontends/tokenizer/model.h"

#include "frontends/tokenizer/component.h"

namespace sinter {
namespace {

/// The files of the library's first versions name no type; what they hold tells.
Result<std::string> model_type(const JsonView& view) {
  if (view["type"].present()) return view["type"].string();
  if (view["merges"].present()) return "BPE";
  if (view["max_input_chars_per_word"].present()) return "WordPiece";
  if (view["vocab"].value() && view["vocab"].value()->array()) return "Unigram";
  return view["type"].mismatch("BPE, WordPiece or Unigram");
}

}  // namespace

Result<TokenModelPtr> read_token_model(const JsonView& view) {
  constexpr ComponentKind<TokenModelPtr> kinds[] = {
      {"BPE", read_bpe}, {"WordPiece", read_wordpiece}, {"Unigram", read_unigram}};
  SINTER_LET(type, model_type(view));
  for (const auto& kind : kinds)
    if (kind.type == type) return kind.read(view);
  return view["type"].fail(fmt::format("unknown model \"{}\"", printable(type, 60)),
                           "use a tokenizer of the types BPE, WordPiece or Unigram");
}

}  // namespace sinter
