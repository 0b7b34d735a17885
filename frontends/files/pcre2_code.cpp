#include "frontends/files/pcre2_code.h"

#include <array>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace sinter {

Result<std::shared_ptr<void>> compile_pcre2(std::string_view pattern, uint32_t options,
                                            std::string_view written) {
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                   PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C | options,
                                   &error, &offset, nullptr);
  if (!code)
    return fail(fmt::format("cannot read the regular expression \"{}\": {}", printable(written),
                            pcre2_message(error)));
  return std::shared_ptr<void>(code,
                               [](void* held) { pcre2_code_free(static_cast<pcre2_code*>(held)); });
}

std::string pcre2_message(int error) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(error, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

}  // namespace sinter
