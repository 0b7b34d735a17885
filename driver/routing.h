// The experts that tokens choose in a measurement. Random weights route tokens unlike trained ones,
// so that a measurement may state the routing instead.
#pragma once

#include "driver/opened_model.h"

namespace sinter {

/// How token t chooses k of E experts, the same in every layer. Row n of a call whose first token
/// has position p is token n + p. Choices repeat after routing_period() tokens.
enum class ExpertRouting : uint8_t {
  random,   // what the router's weights choose
  uniform,  // (t k + r + seed) mod E for r = 0 .. k - 1
  skewed,   // drawn one after the other: expert e, if not drawn yet, with the weight 1 / (e + 1)
};
std::string_view to_string(ExpertRouting routing);
/// An error names --routing.
Result<ExpertRouting> parse_expert_routing(std::string_view text);

int64_t routing_period(const Experts& experts);
/// The experts of the tokens 0 .. routing_period() - 1, k each, of a routing that is not random.
std::vector<int64_t> routed_experts(const Experts& experts, ExpertRouting routing, uint64_t seed);

/// Adds to the operand of each `top_k` a large number for the routing's experts. Errors, which name
/// --routing: the model has no experts; it is a plan.
Status set_routing(OpenedModel& model, ExpertRouting routing, uint64_t seed);

/// How many experts of a layer a step reads.
struct StepExperts {
  ExpertRouting routing = ExpertRouting::random;
  int64_t tokens = 0;  // of the step
  int64_t count = 0;   // the layer's experts
  double read = 0;     // the mean over steps; of a random routing, as if all were equally likely
};
StepExperts step_experts(const Experts& experts, ExpertRouting routing, uint64_t seed,
                         int64_t tokens);
/// "uniform; 8 tokens read 64.0 of a layer's 128 experts"
std::string step_experts_text(const StepExperts& step);

}  // namespace sinter
