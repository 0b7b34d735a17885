#include "frontends/tokenizer_model.h"

#include "frontends/tokenizer_component.h"

namespace sinter {

Result<TokenModelPtr> read_token_model(const JsonView& view) {
  constexpr ComponentKind<TokenModelPtr> kinds[] = {
      {"BPE", read_bpe}, {"WordPiece", read_wordpiece}, {"Unigram", read_unigram}};
  // Files of the first versions name no type; what they hold tells.
  std::string type;
  if (view["type"].present()) {
    SINTER_LET(named, view["type"].string());
    type = named;
  } else {
    type = view["merges"].present() ? "BPE" : "";
  }
  for (const auto& kind : kinds)
    if (kind.type == type) return kind.read(view);
  if (type.empty()) return view["type"].mismatch("BPE, WordPiece or Unigram");
  return view["type"].fail(fmt::format("unknown model \"{}\"", printable(type, 60)),
                           "use a tokenizer of the types BPE, WordPiece or Unigram");
}

}  // namespace sinter
