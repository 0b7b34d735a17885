// Keys of a Hugging Face config that do not change what a model computes at inference.
#pragma once

#include <string_view>

namespace sinter {

bool is_harmless_key(std::string_view key);

}  // namespace sinter
