// Regular expressions of files, compiled by PCRE2.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "ir/error.h"

namespace sinter {

/// A pcre2_code for UTF-8. `pattern` is in PCRE2's syntax, `options` are PCRE2's beside those for
/// UTF-8. `written`: the expression as the file has it, for the error, which has no place.
Result<std::shared_ptr<void>> compile_pcre2(std::string_view pattern, uint32_t options,
                                            std::string_view written);

/// PCRE2's text for one of its errors.
std::string pcre2_message(int error);

}  // namespace sinter
