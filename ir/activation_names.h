// The names of activations in files.
#pragma once

#include <optional>
#include <string_view>

#include "ir/activation.h"

namespace sinter {

/// "relu", "gelu_tanh"; empty for none.
std::string_view to_string(Activation activation);
std::optional<Activation> parse_activation(std::string_view text);

}  // namespace sinter
