// Lists of modules in a quantization config: which linears of a model are meant.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ir/error.h"

namespace sinter {

/// Classes of modules that have weights.
enum class ModuleClass : uint8_t { linear, embedding };

/// The class of a module with a matrix, by the name that models of transformers give it, such as
/// "model.embed_tokens".
ModuleClass class_of(std::string_view module);

/// Names and classes of modules, and patterns of their names. Copies share the patterns; matching
/// is safe from several threads.
class ModuleNames {
 public:
  /// All linears.
  static ModuleNames linears();

  void add_class(ModuleClass added) { classes_.insert(added); }
  /// The module of this name.
  void add_name(std::string name) { names_.insert(std::move(name)); }
  /// Every module whose name has this text in it.
  void add_part(std::string part) { parts_.push_back(std::move(part)); }
  /// Every module whose name the regular expression matches from its beginning, not necessarily to
  /// its end, as re.match of Python has it. Errors have no place; the caller knows it.
  Status add_pattern(std::string_view pattern);

  /// Fails, without a place, if a pattern takes too many steps.
  Result<bool> contains(std::string_view module, ModuleClass of_module = ModuleClass::linear) const;

 private:
  struct Pattern {
    std::string text;
    std::shared_ptr<const void> code;  // pcre2_code
  };

  std::set<ModuleClass> classes_;
  std::set<std::string, std::less<>> names_;
  std::vector<std::string> parts_;
  std::vector<Pattern> patterns_;
};

}  // namespace sinter
