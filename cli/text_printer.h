// A sequence's text on standard output as it grows.
#pragma once

#include "cli/output.h"
#include "driver/text.h"

namespace sinter {

/// Prints one sequence's text as it comes, its prompt first if that is `shown`.
class TextPrinter {
 public:
  static Result<TextPrinter> start(const Tokenizer& tokenizer, const std::vector<int32_t>& prompt,
                                   bool shown) {
    TextPrinter printer{TextStream(tokenizer, true)};
    for (int32_t id : prompt) {
      SINTER_LET(text, printer.stream_.push(id));
      if (shown) print_result(text);
    }
    return printer;
  }
  Status print(int32_t id) {
    SINTER_LET(text, stream_.push(id));
    if (!text.empty()) print_now(text);
    return {};
  }
  Status finish() {
    SINTER_LET(text, stream_.finish());
    print_now(text + "\n");
    return {};
  }

 private:
  explicit TextPrinter(TextStream stream) : stream_(std::move(stream)) {}
  TextStream stream_;
};

}  // namespace sinter
