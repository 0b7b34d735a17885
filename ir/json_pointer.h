// Places inside JSON documents, as errors name them.
#pragma once

#include <string>
#include <string_view>

namespace sinter {

/// "/key" with ~ and / escaped: one step of a JSON pointer (RFC 6901).
std::string json_pointer_step(std::string_view key);

}  // namespace sinter
