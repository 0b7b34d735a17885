// A compiled kernel's use of a multiprocessor's resources, read from its machine code: the same for
// code that was just compiled, found in the cache or stored in a plan.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace sinter {

struct KernelResources {
  int64_t registers = 0;     // of a thread
  int64_t shared_bytes = 0;  // of a block, that the text declares; dynamic memory comes on top
  /// Local memory of a thread for its calls: registers that did not fit, and arrays that are
  /// indexed by numbers that the compiler does not know.
  int64_t spill_bytes = 0;
  int64_t parameter_bytes = 0;
  int64_t most_threads = 0;  // of a block: the first argument of __launch_bounds__; 0: not stated

  friend bool operator==(const KernelResources&, const KernelResources&) = default;
};

/// The resources of a kernel of a cubin, an ELF file of 64 bits. nullopt: `cubin` is no such file,
/// or does not describe the kernel.
std::optional<KernelResources> kernel_resources(std::string_view cubin, std::string_view kernel);

}  // namespace sinter
