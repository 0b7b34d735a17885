// The calls that `profile` runs: a token of decoding, a prefill, or a module's entry.
#pragma once

#include <functional>

#include "driver/measure/resident_calls.h"
#include "driver/profile/costs.h"
#include "driver/profile/profile.h"

namespace sinter {

/// Decodes `count` more tokens and synchronizes.
using RecordedRun = std::function<Status(int64_t count)>;

struct Workload {
  std::string phase;
  std::vector<std::pair<std::string, int64_t>> sizes;
  VisibleRows visible;  // by the calls of resident()
  bool grows = false;   // a token sees one row more than the one before it
  int64_t tokens = 0;   // of a language model's call
  /// The calls of the first token.
  std::function<Result<ResidentCalls>()> resident;
  /// The same through recorded graphs, for at most `most` tokens. Nothing runs until it is asked
  /// for; steps ahead of that may have been launched.
  std::function<Result<RecordedRun>(int64_t most)> record;
};

/// An encoder's entry is profiled as a module's is.
bool is_language_model(const Model& model);

/// The phase to profile, as ProfileOptions::phase says. An error if the model has no such phase.
Result<std::string> chosen_phase(const Model& model, const std::string& asked);

/// The prompts that stand in the cache when a language model decodes; `most` tokens follow each.
Result<std::vector<std::vector<int32_t>>> decode_prompts(const Model& model,
                                                         const ProfileOptions& options,
                                                         int64_t most);

/// `most`: tokens that record() will be asked for. `ready` must outlive the workload.
Result<Workload> make_workload(const Model& model, const ReadyPlan& ready,
                               const ProfileOptions& options, int64_t most);

}  // namespace sinter
