// ldmatrix: loads four matrices of 8 rows of 8 elements of 16 bits from shared memory into the
// fragments of mma.cuh. Lane i gives the address of row i % 8 of matrix i / 8.
#pragma once

#include "kernels/isa/address.cuh"

#if SINTER_HAS_MMA
namespace sinter {

/// Lane 4 g + q gets, of each matrix, elements 2q and 2q + 1 of row g.
SINTER_DEVICE void ldmatrix_x4(unsigned (&words)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(cvta_to_shared(row))
               : "memory");
}
/// Lane 4 g + q gets, of each matrix, element g of the rows 2q and 2q + 1.
SINTER_DEVICE void ldmatrix_x4_trans(unsigned (&words)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(cvta_to_shared(row))
               : "memory");
}

}  // namespace sinter
#endif
