#include "driver/streaming.h"

#include <algorithm>

#include "driver/integers.h"

namespace sinter {

Result<StreamingCache> parse_streaming(const std::string& text) {
  const auto refused = [&] {
    return fail(fmt::format("\"{}\" is no streaming cache", printable(text)), "--kv",
                "write for example sink=4,window=1020", ExitCode::usage);
  };
  const std::string_view all = text;
  const size_t comma = all.find(',');
  if (comma == all.npos) return refused();
  std::optional<int64_t> sink, window;
  for (const std::string_view item : {all.substr(0, comma), all.substr(comma + 1)}) {
    const size_t equals = std::min(item.find('='), item.size());
    const std::string_view name = item.substr(0, equals);
    std::optional<int64_t>* size = name == "sink" ? &sink : name == "window" ? &window : nullptr;
    if (!size || *size || equals == item.size()) return refused();
    SINTER_LET(value, parse_integer<int64_t>(item.substr(equals + 1), fmt::format("--kv {}", name),
                                             {name == "window" ? 1 : 0, kLargestSize}));
    *size = value;
  }
  return StreamingCache{*sink, *window};
}

}  // namespace sinter
