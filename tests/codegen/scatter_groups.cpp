#include "codegen/scatter_groups.h"

namespace sinter {

const std::vector<GroupText> kScatterGroups = {
    {"scatter_to_few_rows", 0, R"(
graph(%i: i32[N], %u: DTYPE[N, 520]) -> (%y) {
  %y = scatter_add %i, %u {rows = 3, checked = 1} : DTYPE[3, 520]
})"},
    {"scatter_to_many_rows", 0, R"(
graph(%i: i32[N], %u: DTYPE[N, 16]) -> (%y) {
  %y = scatter_add %i, %u {rows = 5000, checked = 1} : DTYPE[5000, 16]
})"},
    {"scatter_to_any_number_of_rows", 0, R"(
graph(%i: i32[N], %u: DTYPE[N, W]) -> (%y) {
  %y = scatter_add %i, %u {rows = K, checked = 1} : DTYPE[K, W]
})"},
    {"scatter_of_odd_rows", 0, R"(
graph(%i: i32[N], %u: DTYPE[N, 261]) -> (%y) {
  %y = scatter_add %i, %u {rows = 9, checked = 1} : DTYPE[9, 261]
})"},
    {"scatter_of_a_part", 0, R"(
graph(%i: i32[N, 1], %u: DTYPE[N, 80]) -> (%y) {
  %j = reshape %i {dims = [N]} : i32[N]
  %s = slice %u {axis = 1, begin = 16, size = 40} : DTYPE[N, 40]
  %y = scatter_add %j, %s {rows = 20, checked = 1} : DTYPE[20, 40]
})"},
    {"scatter_of_unaligned_part", 0, R"(
graph(%i: i32[N], %u: DTYPE[N, 81]) -> (%y) {
  %s = slice %u {axis = 1, begin = 1, size = 40} : DTYPE[N, 40]
  %y = scatter_add %i, %s {rows = 20} : DTYPE[20, 40]
})"},
    {"scatter_of_one_row", 0, R"(
graph(%i: i32[N], %u: DTYPE[1, 24]) -> (%y) {
  %b = broadcast %u {dims = [N, 24]} : DTYPE[N, 24]
  %y = scatter_add %i, %b {rows = 20, checked = 1} : DTYPE[20, 24]
})"},
    {"scatter_into_a_sum", 0, R"(
graph(%i: i32[N], %u: DTYPE[N, 264], %w: bf16[32, 264]) -> (%y, %z) {
  %a = scatter_add %i, %u {rows = 20, checked = 1} : DTYPE[20, 264]
  %s = slice %w {axis = 0, begin = 0, size = 20} : bf16[20, 264]
  %c = cast %s : DTYPE[20, 264]
  %y = add %a, %c : DTYPE[20, 264]
  %z = exp %c : DTYPE[20, 264]
})"},
    {"scatter_of_odd_rows_and_its_sum", 0, R"(
graph(%i: i32[N], %u: DTYPE[N, 21], %w: DTYPE[21]) -> (%a, %y) {
  %a = scatter_add %i, %u {rows = 9, checked = 1} : DTYPE[9, 21]
  %y = add %a, %w : DTYPE[9, 21]
})"},
};

}  // namespace sinter
