// Generation on a GPU through recorded graphs of a few steps each.
#pragma once

#include "driver/generate/generation_state.h"
#include "runtime/cuda/memory.h"

namespace sinter {

/// Steps of one graph: between two graphs the device pauses for 14 us (H200). So many may have been
/// computed in vain where a generation ends early.
inline constexpr int64_t kGraphSteps = 4;
/// Steps after which both of a generator's graphs have run.
inline constexpr int64_t kWarmSteps = 2 * kGraphSteps;

class RecordedGenerator : public Generator {
 public:
  /// Goes back to the first token, without the prompts: the same tokens come again, `most` of them
  /// at most. Steps append to a cache where they did before. No streaming cache, which gives up
  /// rows.
  virtual Status restart() = 0;
  /// In which the steps run.
  virtual const CudaStream& stream() const = 0;
};

/// The generator for a CudaExecutable, at most `most` tokens.
Result<std::unique_ptr<RecordedGenerator>> record_generation(
    std::shared_ptr<const Executable> executable, Started state, int64_t most);

}  // namespace sinter
