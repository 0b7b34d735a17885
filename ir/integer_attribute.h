// Integer attributes that an op may lack.
#pragma once

#include "ir/attributes.h"

namespace sinter {

/// The attribute's value; `absent` where the op has none.
inline int64_t integer_or(const Attributes& attrs, AttrName name, int64_t absent) {
  const AttrValue* value = attrs.find(name);
  return value ? std::get<int64_t>(*value) : absent;
}

}  // namespace sinter
