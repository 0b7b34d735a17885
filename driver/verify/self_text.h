// The text that `verify --self` has a model predict.
#pragma once

#include <string_view>

namespace sinter {

/// English prose of some three thousand characters, written for this purpose; UTF-8.
std::string_view self_check_text();

}  // namespace sinter
