// ldmatrix.
#pragma once

#include "ir/scalar_math.h"

namespace sinter {

SINTER_DEVICE void load_matrices(unsigned (&words)[4], const void* row, bool is_transposed) {
  const sinter_shim::MatrixLoad load = {row, words, is_transposed};
  sinter_shim::whole_warp(sinter_shim::ExchangeKind::load, &load, __FILE__, __LINE__);
}
SINTER_DEVICE void ldmatrix_x4(unsigned (&words)[4], const void* row) {
  load_matrices(words, row, false);
}
SINTER_DEVICE void ldmatrix_x4_trans(unsigned (&words)[4], const void* row) {
  load_matrices(words, row, true);
}

}  // namespace sinter
