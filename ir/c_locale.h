// Numbers in files have a decimal point, whatever the host program has set with setlocale().
#pragma once

#include <locale.h>

namespace sinter {

/// While an object lives, this thread has the C locale; other threads keep theirs. Needed around
/// code of others that asks localeconv() or calls strtod(): the parser of JSON. Sinter's own code
/// reads numbers with from_chars and writes them with fmt, which know no locale.
class CLocale {
 public:
  CLocale() : before_(uselocale(c_locale())) {}
  ~CLocale() { uselocale(before_); }
  CLocale(const CLocale&) = delete;
  CLocale& operator=(const CLocale&) = delete;

 private:
  /// Never freed: other threads may use it while the program ends.
  static locale_t c_locale() {
    static const locale_t locale = newlocale(LC_ALL_MASK, "C", nullptr);
    return locale;
  }

  locale_t before_;
};

}  // namespace sinter
