#include "driver/activation_memory.h"

#include "driver/integers.h"

namespace sinter {
namespace {

struct Unit {
  std::string_view name;
  int64_t bytes;
};
constexpr Unit kUnits[] = {{"kB", 1000},
                           {"MB", 1'000'000},
                           {"GB", 1'000'000'000},
                           {"KiB", int64_t{1} << 10},
                           {"MiB", int64_t{1} << 20},
                           {"GiB", int64_t{1} << 30},
                           {"B", 1}};

}  // namespace

Result<int64_t> parse_memory(std::string_view text, const std::string& where) {
  int64_t bytes = 1;
  std::string_view digits = text;
  for (const Unit& unit : kUnits)
    if (text.ends_with(unit.name)) {
      bytes = unit.bytes;
      digits.remove_suffix(unit.name.size());
      break;
    }
  const auto number =
      parse_integer<int64_t>(digits, where, {.least = 1, .most = INT64_MAX / bytes});
  if (number) return *number * bytes;
  return fail(fmt::format("\"{}\" is no size of memory", printable(text, 40)), where,
              "write for example 2GB, 1500MB or 2GiB", ExitCode::usage);
}

Result<int64_t> arena_bytes(const EntryPlan& entry, llvm::ArrayRef<int64_t> symbol_values) {
  if (const auto layout = arena_layout(entry, symbol_values)) return layout->bytes;
  return fail("the arena's size exceeds 63 bits", "entry " + printable(entry.name),
              "give smaller sizes");
}

}  // namespace sinter
