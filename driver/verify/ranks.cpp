#include "driver/verify/ranks.h"

#include "driver/ranks.h"
#include "driver/verify/parts.h"

namespace sinter {
namespace {

struct RankCheck {
  OpenedModel model;
  Plans plans;
  VerifyOptions options;
  DTypeReport report;
};

Status check_rank_options(const VerifyOptions& options, const std::string& path) {
  SINTER_TRY(check_ranks(options.ranks, options.backend->on_gpu()));
  SINTER_LET(module, is_module(path));
  if (!module || is_plan_folder(path))
    return fail("ranks run the collectives of a .sir module", path, "leave out --ranks",
                ExitCode::usage);
  if (!options.reference.empty() || options.compile.fusion.numerics == Numerics::fast)
    return fail("several ranks are compared by bits, with strict numerics and without a reference",
                path, "leave out --reference and --numerics, or --ranks", ExitCode::usage);
  return {};
}

Result<RankCheck> make_rank(const std::string& path, const VerifyOptions& options, RankGroup& group,
                            size_t rank) {
  RankCheck check;
  check.options = options;
  SINTER_LET(model, open_rank(path, options.open, rank));
  SINTER_LET(plans, make_plans(model, options.compile, *options.backend));
  CallsOptions& calls = check.options.calls;
  calls.inputs = of_rank(calls.inputs, rank);
  calls.seed = calls.seed.value_or(options.seed) + rank;
  calls.ranks = &group;
  calls.rank = rank;
  check.model = std::move(model);
  check.plans = std::move(plans);
  return check;
}

/// Adds a rank's comparisons to those of rank 0.
void add_rank(size_t rank, const DTypeReport& one, DTypeReport& all) {
  all.calls += one.calls;
  all.values += one.values;
  all.elements += one.elements;
  if (!all.difference.empty()) return;
  if (!one.difference.empty())
    all.difference = fmt::format("rank {}: {}", rank, one.difference);
  else if (one.reduced_hash != all.reduced_hash)
    all.difference = fmt::format("rank {}: results of all_reduce other than of rank 0", rank);
}

}  // namespace

Result<DTypeReport> verify_ranks(const std::string& path, const VerifyOptions& options) {
  SINTER_TRY(check_rank_options(options, path));
  RankGroup group(options.ranks);
  std::vector<RankCheck> checks;
  for (size_t rank = 0; rank < options.ranks; ++rank) {
    SINTER_LET(check, make_rank(path, options, group, rank));
    checks.push_back(std::move(check));
  }
  SINTER_TRY(on_ranks(group, [&](size_t rank) {
    RankCheck& check = checks[rank];
    return verify_module(check.plans, check.model, check.options, check.report);
  }));
  DTypeReport report = checks[0].report;
  report.ranks = options.ranks;
  for (const EntryPlan& entry : checks[0].plans.fused->program().entries)
    report.fused_launches += entry.steps.size();
  for (const EntryPlan& entry : checks[0].plans.unfused->program().entries)
    report.unfused_launches += entry.steps.size();
  for (size_t rank = 1; rank < options.ranks; ++rank) add_rank(rank, checks[rank].report, report);
  return report;
}

}  // namespace sinter
