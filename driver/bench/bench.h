// How fast a model runs on a GPU: its fused plan beside its unfused one, measured in turns in one
// run, against what the device reaches at most in the same run.
#pragma once

#include "driver/backend.h"
#include "driver/profile/profile.h"
#include "driver/tune/form_search.h"

namespace sinter {

struct BenchOptions {
  std::shared_ptr<Backend> backend;  // of a GPU
  OpenOptions load;
  CompileOptions compile;  // of the fused plan; the unfused one has the same target
  bool tuned =
      false;  // the backend chooses matrix products by timing, and this the forms of kernels
  int64_t repeat = 10;  // samples of each plan
  uint64_t seed = 1;    // of tokens, inputs and the routing
  // Language models. Sizes that are not given are the usual ones that the model's positions allow.
  std::optional<std::vector<int64_t>> prompts;  // tokens of a sequence; usually 512 and 2048
  int64_t tokens = 128;            // decode steps of a sample; 0: no decoding is measured
  std::optional<int64_t> context;  // tokens before the first timed step; usually 1024
  int64_t batch = 1;               // sequences
  ExpertRouting routing = ExpertRouting::random;
  bool kernels = false;  // profile a decode step of the fused plan, too
  // Modules: values by name; other symbols are at their least.
  std::vector<std::pair<std::string, int64_t>> symbols;
  /// Receives a description of each stage, for people.
  std::function<void(const std::string&)> on_stage;
};

/// Samples of one plan, in the order in which they were taken: seconds of a token or call.
struct PlanTimes {
  uint64_t launches = 0;  // of a token or call: steps of the plan
  /// The cost model's seconds of a token or call; absent: the plan was stored, without its fusion.
  std::optional<double> predicted_s;
  std::vector<double> device_s;  // between events in the stream
  std::vector<double> host_s;    // by the host's clock
};

/// One thing measured.
struct BenchCase {
  std::string name;                                    // "decode", "prefill", an entry
  std::vector<std::pair<std::string, int64_t>> sizes;  // "context", 1024
  enum class Work : uint8_t { bytes, operations };
  Work work = Work::bytes;   // what bounds it
  double amount = 0;         // of a token or call
  std::string ceiling_name;  // "read", "copy", "GEMM"
  Ceiling ceiling;
  PlanTimes fused, unfused;

  double speedup() const;                           // of the medians
  double per_s(const PlanTimes& times) const;       // amount over the median of the device's time
  double of_ceiling(const PlanTimes& times) const;  // share
};

struct BenchMachine {
  std::string device;                  // "NVIDIA H200"
  std::string driver;                  // "CUDA 13.0"
  std::vector<std::string> libraries;  // with versions
  int multiprocessors = 0;
  size_t memory_bytes = 0, l2_bytes = 0;
};

struct BenchReport {
  std::string model;                     // the module's name
  std::string dtype;                     // of a language model
  Numerics numerics = Numerics::strict;  // of the fused plan
  BenchMachine machine;
  bool measured_board = false;  // predictions are made with the rates that it was measured at
  int64_t repeat = 0;
  bool tuned = false;
  double weight_bytes = 0;                              // all weights on the device
  std::optional<StepExperts> experts;                   // of a decode step
  std::vector<std::pair<std::string, double>> seconds;  // before the measurements, by stage
  FormSearch forms;  // BenchOptions::tuned, where there was something to choose
  std::vector<BenchCase> cases;
  std::optional<Profile> decode;  // BenchOptions::kernels
};

/// Reads, compiles, loads and measures. Errors: a backend without a GPU (ExitCode::device); sizes
/// that the model does not allow; plans whose results differ (ExitCode::check_failed): times of
/// wrong results are worth nothing. With fast numerics results may differ somewhat, tokens at all.
Result<BenchReport> bench(const std::string& path, const BenchOptions& options);

}  // namespace sinter
