// Ranks as threads of this process.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>

#include "driver/opened_model.h"
#include "runtime/rank_group.h"

namespace sinter {

inline constexpr size_t kMaxRanks = 64;

/// `text` with the rank's number in the place of each "{rank}".
std::string of_rank(std::string_view text, size_t rank);
/// The model as the rank sees it: the seed of random weights plus the rank, and files of its own
/// where their name has "{rank}".
Result<OpenedModel> open_rank(const std::string& path, OpenOptions options, size_t rank);

/// Calls `work` for each rank of the group on a thread of its own. The error of the rank that
/// failed first, with its number.
Status on_ranks(RankGroup& group, llvm::function_ref<Status(size_t rank)> work);

/// Refuses ranks on a device that has none.
Status check_ranks(size_t ranks, bool on_gpu);

}  // namespace sinter
