// Loops compiled for several vector widths, the widest that the machine has chosen at load time.
// Contraction is off and fused multiply-add exact, so that the results are the same bits.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#if __GNUC__ >= 12
#define SINTER_VECTOR_CLONES \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
// An older GCC has no names for levels of instructions. A processor's name, such as haswell, would
// cover one maker's processors only.
#define SINTER_VECTOR_CLONES __attribute__((target_clones("avx512f", "default")))
#endif
#else
#define SINTER_VECTOR_CLONES
#endif
