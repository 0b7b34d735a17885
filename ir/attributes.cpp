#include "ir/attributes.h"

namespace sinter {

std::string_view to_string(AttrName name) {
  switch (name) {
#define X(attribute, type)  \
  case AttrName::attribute: \
    return #attribute;
    SINTER_ATTRIBUTES(X)
#undef X
  }
  SINTER_CHECK(false, "attribute name");
}

std::optional<AttrName> parse_attr_name(std::string_view text) {
#define X(attribute, type) \
  if (text == #attribute) return AttrName::attribute;
  SINTER_ATTRIBUTES(X)
#undef X
  return std::nullopt;
}

size_t attr_type_index(AttrName name) {
  switch (name) {
#define X(attribute, type)  \
  case AttrName::attribute: \
    return AttrValue(std::in_place_type<type>).index();
    SINTER_ATTRIBUTES(X)
#undef X
  }
  SINTER_CHECK(false, "attribute name");
}

Attributes& Attributes::set(AttrName name, AttrValue value) {
  const size_t type = attr_type_index(name);
  if (type == AttrValue(Number()).index())
    if (const double* real = std::get_if<double>(&value)) value = Number(*real);
  if (type == AttrValue(std::vector<Number>()).index())
    if (const auto* reals = std::get_if<std::vector<double>>(&value))
      value = std::vector<Number>(reals->begin(), reals->end());
  SINTER_CHECK(value.index() == type, "type of attribute {}", to_string(name));
  auto at = llvm::find_if(entries_, [&](const auto& entry) { return entry.first >= name; });
  if (at != entries_.end() && at->first == name)
    at->second = std::move(value);
  else
    entries_.insert(at, {name, std::move(value)});
  return *this;
}

const AttrValue* Attributes::find(AttrName name) const {
  for (const auto& [key, value] : entries_)
    if (key == name) return &value;
  return nullptr;
}

std::string_view to_string(Order order) {
  switch (order) {
#define SINTER_ORDER(name, ...) \
  case Order::name:             \
    return #name;
#include "ir/orders.def"
  }
  SINTER_CHECK(false, "order");
}

std::optional<Order> parse_order(std::string_view text) {
#define SINTER_ORDER(name, ...) \
  if (text == #name) return Order::name;
#include "ir/orders.def"
  return std::nullopt;
}

}  // namespace sinter
