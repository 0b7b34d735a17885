// Where a token's time goes on a GPU: time, bytes and rate of every kernel, the gaps between them,
// and what crosses the bus.
#pragma once

#include "driver/backend.h"
#include "driver/profile/rows.h"
#include "driver/ready_plan.h"
#include "driver/routing.h"

namespace sinter {

struct ProfileOptions {
  std::shared_ptr<Backend> backend;  // of a GPU
  CompileOptions compile;
  /// A language model's decode (one token, the default) or prefill, or a module's entry; the first
  /// one by default.
  std::string phase;
  std::optional<int64_t>
      context;  // tokens in the cache before; decode: 1024 or what fits, prefill: 0
  std::optional<int64_t> prompt;  // tokens of a prefill; 512 or what fits
  int64_t batch = 1;              // sequences that are decoded; a token is then one of each
  bool tuned = false;  // decode: the forms that the backend's record lacks are chosen by timing
  int64_t count = 16;  // tokens (or calls) that are measured, in each of the ways
  uint64_t seed = 1;   // of random tokens or inputs and the routing
  ExpertRouting routing = ExpertRouting::random;
  std::vector<std::pair<std::string, int64_t>>
      symbols;  // of a module, by name; the others are the usual ones
};

/// One way of running the same tokens.
struct ProfileRun {
  std::vector<ProfiledToken> tokens;
  TokenTimes times;
  std::vector<TokenCopies> copies;
};

struct Profile {
  std::string model, phase, device, driver,
      dtype;  // "llama-2-7b", "decode", "cuda:0 (NVIDIA H200)", "13.0"; dtype may be empty
  bool fused = true;
  std::vector<std::pair<std::string, int64_t>> sizes;  // "context", 1024
  std::optional<StepExperts> experts;                  // of a language model's call
  int64_t count = 0;
  ProfileCeilings ceilings;
  double untraced_s =
      0;                // of a token through recorded graphs, without a trace, by the host's clock
  ProfileRun stepped;   // every step launched by the host
  ProfileRun recorded;  // through recorded graphs
  /// Whether the graphs' kernels are the steps' kernels, in order: then `rows` have the graphs'
  /// times, else the times of the steps launched one by one.
  bool matched = false;
  std::vector<ProfiledStep> steps;
  std::vector<ProfileRow> rows;

  double bytes() const;   // that all steps of a token move
  double busy_s() const;  // of a token through recorded graphs: in which any kernel runs
  double idle_s() const;  // the rest of untraced_s
};

/// Compiles, loads, runs and measures. Errors: a backend without a GPU, no CUPTI
/// (ExitCode::device); a phase or sizes that the model does not have.
Result<Profile> profile(const OpenedModel& model, const ProfileOptions& options);
/// The same of a model that is compiled and loaded already.
Result<Profile> profile(const Model& model, const ReadyPlan& ready, const ProfileOptions& options);

}  // namespace sinter
