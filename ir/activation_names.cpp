#include "ir/activation_names.h"

#include "ir/error.h"

namespace sinter {

std::string_view to_string(Activation activation) {
  switch (activation) {
    case Activation::none:
      return "";
    case Activation::relu:
      return "relu";
    case Activation::gelu_tanh:
      return "gelu_tanh";
  }
  SINTER_CHECK(false, "activation");
}

std::optional<Activation> parse_activation(std::string_view text) {
  for (Activation activation : {Activation::none, Activation::relu, Activation::gelu_tanh})
    if (text == to_string(activation)) return activation;
  return std::nullopt;
}

}  // namespace sinter
