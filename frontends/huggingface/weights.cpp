// How families write down the names of their weights.
#include "frontends/huggingface/config.h"

namespace sinter {

void add_rules(WeightMap& map, const std::string& weight, const std::string& tensor,
               const TensorRule& cut) {
  for (const std::string part : {".weight", ".bias"}) {
    TensorRule& rule = map.rules[weight + part] = cut;
    rule.tensor = "{p}" + tensor + part;
    rule.transposed = cut.transposed && part == ".weight";
  }
}

void add_layer_rule(WeightMap& map, const std::string& weight, const std::string& tensor,
                    const TensorRule& cut) {
  add_rules(map, "l{i}." + weight, "layers.{i}." + tensor, cut);
}

void add_expert_rules(WeightMap& map, const std::string& block, const std::string& gate,
                      const std::string& up, const std::string& down) {
  const auto name = [](const std::string& end) { return "{p}layers.{i}." + end; };
  const auto of_expert = [&](const std::string& matrix) {
    return name(block + ".experts.{e}." + matrix + ".weight");
  };
  map.rules["l{i}.experts.gate_up.weight"] = {.tensor = of_expert(gate), .second = of_expert(up)};
  map.rules["l{i}.experts.down.weight"] = {.tensor = of_expert(down)};
  add_layer_rule(map, "router", block + ".gate");
  map.others["l{i}.experts.gate_up.weight"] = {.tensor = name("mlp.experts.gate_up_proj")};
  map.others["l{i}.experts.down.weight"] = {.tensor = name("mlp.experts.down_proj")};
  if (block != "mlp") map.others["l{i}.router.weight"] = {.tensor = name("mlp.gate.weight")};
}

}  // namespace sinter
