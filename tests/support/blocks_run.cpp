#include "support/blocks_run.h"

namespace {
size_t blocks = 0;
}  // namespace

/// Called at the beginning of each block.
extern "C" void __sanitizer_cov_trace_pc() { ++blocks; }

namespace sinter::test {
size_t blocks_run() { return blocks; }
}  // namespace sinter::test
