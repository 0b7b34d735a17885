#include "frontends/quantized/module_names.h"

#include <fmt/format.h>
#include <llvm/ADT/STLExtras.h>

#include "frontends/files/pcre2_code.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace sinter {
namespace {

// A pattern from a file may be made to backtrack without end. A name has some 60 characters.
constexpr uint32_t kMaxSteps = 20'000;
constexpr size_t kMaxPatterns = 256, kMaxPatternBytes = 4096;

pcre2_match_context* name_limits() {
  static pcre2_match_context* const shared = [] {
    pcre2_match_context* context = pcre2_match_context_create(nullptr);
    pcre2_set_match_limit(context, kMaxSteps);
    pcre2_set_depth_limit(context, kMaxSteps);
    return context;
  }();
  return shared;
}

}  // namespace

ModuleClass class_of(std::string_view module) {
  constexpr std::string_view kTables[] = {"embed_tokens",
                                          "embed_in",
                                          "embed_positions",
                                          "tok_embeddings",
                                          "word_embeddings",
                                          "wte",
                                          "wpe",
                                          "position_embeddings",
                                          "token_type_embeddings",
                                          "relative_attention_bias"};
  const size_t dot = module.rfind('.');
  const std::string_view last = dot == module.npos ? module : module.substr(dot + 1);
  return llvm::is_contained(kTables, last) ? ModuleClass::embedding : ModuleClass::linear;
}

ModuleNames ModuleNames::linears() {
  ModuleNames names;
  names.add_class(ModuleClass::linear);
  return names;
}

Status ModuleNames::add_pattern(std::string_view pattern) {
  if (pattern.size() > kMaxPatternBytes)
    return fail(fmt::format("a regular expression of {} bytes, at most {} are read", pattern.size(),
                            kMaxPatternBytes));
  if (patterns_.size() == kMaxPatterns)
    return fail(fmt::format("more than {} regular expressions", kMaxPatterns));
  SINTER_LET(code, compile_pcre2(pattern, PCRE2_ANCHORED, pattern));
  patterns_.push_back({std::string(pattern), std::move(code)});
  return {};
}

Result<bool> ModuleNames::contains(std::string_view module, ModuleClass of_module) const {
  if (classes_.contains(of_module) || names_.contains(module)) return true;
  if (llvm::any_of(parts_, [&](const std::string& part) {
        return module.find(part) != std::string_view::npos;
      }))
    return true;
  for (const Pattern& pattern : patterns_) {
    const auto* code = static_cast<const pcre2_code*>(pattern.code.get());
    pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
    const int count = pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(module.data()), module.size(),
                                  0, 0, data, name_limits());
    pcre2_match_data_free(data);
    if (count >= 0) return true;
    if (count != PCRE2_ERROR_NOMATCH)
      return fail(fmt::format("the regular expression \"{}\" gives up on the name {}: {}",
                              printable(pattern.text), printable(module), pcre2_message(count)),
                  {}, "write a simpler expression");
  }
  return false;
}

}  // namespace sinter
