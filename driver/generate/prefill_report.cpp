#include "driver/generate/prefill_report.h"

#include <nlohmann/json.hpp>

#include "driver/text_table.h"

namespace sinter {

std::string prefill_text(const PrefillChunk& chunk) {
  return fmt::format("{} of at most {}, activations take {} of {}",
                     counted(static_cast<uint64_t>(chunk.calls), "call"),
                     counted(static_cast<uint64_t>(chunk.tokens), "token"),
                     with_unit(static_cast<double>(chunk.arena_bytes), "B"),
                     with_unit(static_cast<double>(chunk.activation_bytes), "B"));
}

nlohmann::ordered_json prefill_json(const PrefillChunk& chunk) {
  return {{"calls", chunk.calls},
          {"chunk", chunk.tokens},
          {"arena_bytes", chunk.arena_bytes},
          {"activation_bytes", chunk.activation_bytes}};
}

}  // namespace sinter
