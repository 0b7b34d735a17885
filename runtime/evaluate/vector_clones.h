// Loops compiled for several vector widths, the widest that the machine has chosen at load time.
// Contraction is off and fused multiply-add exact, so that the results are the same bits.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SINTER_VECTOR_CLONES __attribute__((target_clones("avx512f", "arch=haswell", "default")))
#else
#define SINTER_VECTOR_CLONES
#endif
