// Kernel text compiled by the system's C++ compiler and loaded into this process.
#pragma once

#include <llvm/ADT/ArrayRef.h>

#include <map>
#include <memory>
#include <string>

#include "device/embedded_header.h"
#include "shim/block_runner.h"

namespace sinter {

/// One `extern "C" __global__` function `name` and whatever it needs, as text.
struct ShimSource {
  std::string name;
  std::string text;
};

/// A loaded library of kernels. Its files live in a temporary folder and go with it.
class ShimModule {
 public:
  /// Precompiles the headers, which `compile` does otherwise when it first sees them: a process
  /// that forks children does it once for all.
  static Status prepare(llvm::ArrayRef<EmbeddedHeader> headers);

  /// Compiles all kernels in one translation unit, each in a namespace of its own. The compiler is
  /// the build's, with its sanitizers; headers are precompiled once. Two kernels of one name must
  /// have one text. `prefix` stands before all, headers included. Errors carry the compiler's first
  /// messages.
  static Result<ShimModule> compile(llvm::ArrayRef<ShimSource> kernels,
                                    llvm::ArrayRef<EmbeddedHeader> headers,
                                    const std::string& prefix = {});

  bool has(std::string_view name) const { return kernels_.find(name) != kernels_.end(); }
  /// Number of parameters of the kernel, which the module has.
  int parameter_count(std::string_view name) const;
  /// Runs a kernel; arguments[i] is the address of parameter i.
  Status launch(std::string_view name, const Grid& grid, llvm::ArrayRef<void*> arguments,
                ThreadOrder order = ThreadOrder::ascending) const;

 private:
  struct Loaded {
    sinter_shim::KernelEntry entry;
    int parameter_count;
  };
  struct Close {
    void operator()(void* library) const;
  };

  std::unique_ptr<void, Close> library_;
  std::map<std::string, Loaded, std::less<>> kernels_;
};

}  // namespace sinter
