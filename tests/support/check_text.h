// A text against the file that holds it, as a check of doctest.
#pragma once

#include <doctest/doctest.h>

#include "support/expected_text.h"

namespace sinter::test {

/// The file is `name` below tests. A failure shows the lines that differ and the command that
/// accepts them, by the name that ctest knows the `test` by.
inline void check_text_file(const std::string& text, const std::string& name,
                            const std::string& test) {
  const std::string difference = compare_text_file(text, SINTER_TESTS_DIR "/" + name);
  CHECK_MESSAGE(difference.empty(), name, " differs:\n", difference, "SINTER_BLESS=1 ctest -R '^",
                test, "$' accepts the lines marked +");
}

}  // namespace sinter::test
