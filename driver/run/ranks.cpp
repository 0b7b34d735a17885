#include "driver/run/ranks.h"

#include "driver/ranks.h"

namespace sinter {
namespace {

CallsOptions calls_of(const CallsOptions& options, RankGroup& group, size_t rank) {
  CallsOptions calls = options;
  calls.inputs = of_rank(calls.inputs, rank);
  calls.seed = calls.seed.value_or(1) + rank;
  calls.ranks = &group;
  calls.rank = rank;
  return calls;
}

}  // namespace

Result<std::vector<TokenRun>> run_ranks(const std::string& path, const OpenOptions& open,
                                        const CallsOptions& options, const RunOptions& run,
                                        size_t ranks) {
  std::vector<OpenedModel> models;
  for (size_t rank = 0; rank < ranks; ++rank) {
    SINTER_LET(model, open_rank(path, open, rank));
    models.push_back(std::move(model));
  }
  RankGroup group(ranks);
  std::vector<TokenRun> results(ranks);
  SINTER_TRY(on_ranks(group, [&](size_t rank) -> Status {
    SINTER_LET(values, run_inputs(models[rank], calls_of(options, group, rank), run));
    results[rank].values = std::move(values);
    return {};
  }));
  return results;
}

}  // namespace sinter
