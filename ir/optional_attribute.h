// Numbers among the attributes that an op may lack.
#pragma once

#include "ir/attributes.h"

namespace sinter {

/// The integer attribute's value; `absent` where the op has none.
inline int64_t integer_or(const Attributes& attrs, AttrName name, int64_t absent) {
  const AttrValue* value = attrs.find(name);
  return value ? std::get<int64_t>(*value) : absent;
}
/// The real attribute's value; 0 where the op has none.
inline double real_or_zero(const Attributes& attrs, AttrName name) {
  const AttrValue* value = attrs.find(name);
  return value ? std::get<double>(*value) : 0;
}

}  // namespace sinter
