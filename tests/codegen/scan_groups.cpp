#include "codegen/scan_groups.h"

namespace sinter {

ScanGroup scan_group(const std::string& dims, int64_t axis, int form) {
  const std::string attrs =
      fmt::format("axis = {}{}{}", axis, (form & 1) != 0 ? ", reverse = 1" : "",
                  (form & 2) != 0 ? ", exclusive = 1" : "");
  return {fmt::format("[{}] {{{}}}", dims, attrs),
          fmt::format("graph(%x: DTYPE[{0}]) -> (%y) {{\n"
                      "  %y = cumulative_sum %x {{{1}}} : DTYPE[{0}]\n"
                      "}}",
                      dims, attrs)};
}

const std::vector<GroupText> kScanViews = {
    {"scan_of_second_element_on", 0, R"(
graph(%x: DTYPE[N, 301]) -> (%y) {
  %s = slice %x {axis = 1, begin = 1, size = 300} : DTYPE[N, 300]
  %y = cumulative_sum %s {axis = 1, reverse = 1} : DTYPE[N, 300]
})"},
    {"scan_of_aligned_part", 0, R"(
graph(%x: DTYPE[N, 1024]) -> (%y) {
  %s = slice %x {axis = 1, begin = 16, size = 520} : DTYPE[N, 520]
  %y = cumulative_sum %s {axis = 1, exclusive = 1} : DTYPE[N, 520]
})"},
    {"scan_of_columns_of_part", 0, R"(
graph(%x: DTYPE[N, 80]) -> (%y) {
  %s = slice %x {axis = 1, begin = 2, size = 70} : DTYPE[N, 70]
  %y = cumulative_sum %s {axis = 0} : DTYPE[N, 70]
})"},
    {"scan_of_columns_at_odd_element", 0, R"(
graph(%x: DTYPE[N, 80]) -> (%y) {
  %s = slice %x {axis = 1, begin = 1, size = 64} : DTYPE[N, 64]
  %y = cumulative_sum %s {axis = 0, reverse = 1} : DTYPE[N, 64]
})"},
    {"scan_of_one_column", 0, R"(
graph(%x: DTYPE[N, 9]) -> (%y) {
  %s = slice %x {axis = 1, begin = 4, size = 1} : DTYPE[N, 1]
  %y = cumulative_sum %s {axis = 0} : DTYPE[N, 1]
})"},
    {"scan_of_one_row", 0, R"(
graph(%x: DTYPE[1, 40]) -> (%y) {
  %s = broadcast %x {dims = [N, 40]} : DTYPE[N, 40]
  %y = cumulative_sum %s {axis = 1} : DTYPE[N, 40]
})"},
    {"scan_down_one_row", 0, R"(
graph(%x: DTYPE[1, 40]) -> (%y) {
  %s = broadcast %x {dims = [N, 40]} : DTYPE[N, 40]
  %y = cumulative_sum %s {axis = 0, exclusive = 1} : DTYPE[N, 40]
})"},
    {"scan_of_reshaped", 0, R"(
graph(%x: DTYPE[N, 24]) -> (%y) {
  %s = reshape %x {dims = [N, 3, 8]} : DTYPE[N, 3, 8]
  %y = cumulative_sum %s {axis = 1} : DTYPE[N, 3, 8]
})"},
};

}  // namespace sinter
