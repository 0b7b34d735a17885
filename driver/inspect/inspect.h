// The properties of a model and the costs of its ops before any fusion, from its description alone.
#pragma once

#include "device/device.h"
#include "driver/compile/stated_sizes.h"
#include "driver/inspect/prompt_memory.h"
#include "driver/opened_model.h"

namespace sinter {

/// Ops of one class in an entry: a projection by its name, others by what they do.
struct NodeClass {
  std::string name;
  uint64_t count = 0;
  double flops = 0;
  double bytes = 0;        // operands and results, each op for itself
  double predicted_s = 0;  // by the cost model, each op a kernel or a library call
  /// Floating-point operations per byte; above the device's ratio the class is bound by arithmetic.
  double intensity() const { return bytes > 0 ? flops / bytes : 0; }
};

struct EntryCosts {
  std::string name;
  std::string sizes;  // "N=512 K=1024"
  std::vector<NodeClass> classes;
  NodeClass total;
  /// Arena bytes of the fused plan, and of the plan with a kernel for each op.
  int64_t arena_bytes = 0, unfused_arena_bytes = 0;
};

struct Inspection {
  std::string name;
  std::vector<std::pair<std::string, std::string>> facts;  // what, value
  int64_t parameters = 0;  // elements of the weights, codes of packed matrices
  /// By element type; of packed matrices by their format, "int4 g128 f16".
  std::vector<std::pair<std::string, double>> weight_bytes;
  double cache_bytes_per_token = 0;  // all states, one row
  DeviceDescription device;
  std::vector<EntryCosts> entries;
  std::optional<PromptMemory> prompts;
  /// Operations per byte at which the device's arithmetic and memory take equally long.
  double ridge() const { return device.tensor_flops_per_s / device.memory_bytes_per_s; }
};

struct InspectOptions {
  std::string device = "sm_90a";
  GivenSizes sizes;                     // in place of usual ones
  std::optional<AskedPrompts> prompts;  // whose memory is wanted
  PrefillOptions prefill;               // of these prompts
};

/// Reads no weights. Costs belong to the plan with a kernel for each op, at usual_sizes, overridden
/// by the given sizes; arenas and the memory of prompts belong to the fused plan, or to the stored
/// plan of a plan's folder. Errors: an unknown device; a module that does not compile; sizes that
/// the symbols cannot have; as prompt_memory.
Result<Inspection> inspect(const OpenedModel& model, const InspectOptions& options = {});

std::string inspection_text(const Inspection& inspection);
std::string inspection_json(const Inspection& inspection);

}  // namespace sinter
