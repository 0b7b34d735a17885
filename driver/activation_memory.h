// How much memory the intermediate values of a call may take: the arena of the entry.
#pragma once

#include <cstdint>
#include <string>

#include "plan/program.h"

namespace sinter {

/// Where nothing else is said. A prefill of Llama-2-7B needs about 0.15 MB a token beside its
/// scores: 2 GB are thousands of tokens, far more than fill a GPU, and a small part of its memory.
inline constexpr int64_t kActivationBytes = 2'000'000'000;

/// "2GB", "1500MB", "2GiB", "512MiB", "64kB" or a number of bytes. An error names `where`.
Result<int64_t> parse_memory(std::string_view text, const std::string& where);

/// Bytes of the entry's arena; an error where they exceed 63 bits.
Result<int64_t> arena_bytes(const EntryPlan& entry, llvm::ArrayRef<int64_t> symbol_values);

}  // namespace sinter
