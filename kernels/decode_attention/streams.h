// The streams of a decode_attention as its attributes state them.
#pragma once

#include "ir/attributes.h"
#include "kernels/decode_attention/order.h"

namespace sinter {

/// Streams of each split, of heads of `lanes` lanes.
inline int64_t attention_streams(const Attributes& attrs, int lanes) {
  const AttrValue* streams = attrs.find(AttrName::streams);
  return streams ? std::get<int64_t>(*streams) : attention_most_streams(lanes);
}

}  // namespace sinter
