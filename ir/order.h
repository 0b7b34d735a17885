// Orders: the algorithms of kernel families for an op that has several (orders.def).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace sinter {

enum class Order : uint8_t {
#define SINTER_ORDER(name, ...) name,
#include "ir/orders.def"
};

std::string_view to_string(Order order);
std::optional<Order> parse_order(std::string_view name);

}  // namespace sinter
