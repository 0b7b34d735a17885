// Counts the basic blocks of code that run, of sources compiled with -fsanitize-coverage=trace-pc:
// a measure of time that is the same in every run.
#pragma once

#include <cstddef>

namespace sinter::test {

/// Since the program began.
size_t blocks_run();

}  // namespace sinter::test
