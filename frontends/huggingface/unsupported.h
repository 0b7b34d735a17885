// Model types that are known and not supported, and what they need that is not there.
#pragma once

#include <string_view>

namespace sinter {

/// The feature that a model of this type needs; empty for a type that is not in the list.
std::string_view missing_feature(std::string_view model_type);

}  // namespace sinter
