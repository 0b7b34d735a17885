// Codes of 4 bits that select an entry of a table (ir/packed_codes.h).
#pragma once

#include "ir/packed_codes.h"
#include "kernels/isa/bits.cuh"

namespace sinter {

// The entries of the lowest four codes of a word as four codes of codes::int8. prmt chooses one of
// eight entries by a code's lower 3 bits, then one of both halves of the table by the highest bit.
SINTER_DEVICE unsigned iq4nl_entries(unsigned word) {
  constexpr unsigned first = codes::iq4nl::entries(0), second = codes::iq4nl::entries(4),
                     third = codes::iq4nl::entries(8), last = codes::iq4nl::entries(12);
  const unsigned digits = word & 0x7777u;
  return prmt(prmt(first, second, digits), prmt(third, last, digits),
              lop3_and_or(word >> 1, 0x4444u, 0x3210u));
}

}  // namespace sinter
