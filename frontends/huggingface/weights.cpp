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

}  // namespace sinter
