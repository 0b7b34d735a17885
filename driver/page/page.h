// Pages of HTML that need no other file and no network: data as JSON, and the scripts that draw it.
#pragma once

#include <string>
#include <string_view>

namespace sinter {

/// A page stays below this size, so that it can be attached to an issue or a message.
inline constexpr size_t kMaxPageBytes = 2'000'000;

/// A page with `data`, a JSON text of any origin, which `script` ("explain.js", a file of
/// driver/page) draws with the functions of page.js. The element #sinter-sources holds an empty
/// JSON object, in whose place a host program may put lines of the user's source by the name of a
/// value.
std::string page(std::string_view title, std::string_view script, std::string_view data);

/// The JSON text with the characters that end a script element, or a line of a script, escaped. It
/// has the same value.
std::string json_in_html(std::string_view json);

}  // namespace sinter
