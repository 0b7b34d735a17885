// Group → CUDA text.
#pragma once

#include "device/device.h"
#include "device/tuned_form.h"
#include "plan/program.h"

namespace sinter {

/// Results of a group that are computed in rows of their own, apart from its other parts.
struct KernelPart {
  uint32_t prefix_rank;
  llvm::SmallVector<uint32_t, 4> outputs;  // of the group, ascending
};

/// The kernel that computes `group` (inputs: roots of the reads; outputs: the results; composites
/// allowed). Every op except views and generators has the leading dims `prefix_rank` axes of the
/// group's parallel prefix. Pure: equal groups give equal text.
Result<Kernel> emit_kernel(const Graph& group, uint32_t prefix_rank, llvm::ArrayRef<Symbol> symbols,
                           const DeviceDescription& device);

/// The same for a group of one part or several side by side, none of which reads another's values:
/// each has blocks of its own. Every output belongs to one part. `overlap`: with its neighbours in
/// a stream, as launch_order() says; without, it reads nothing early and triggers at once.
/// `forms`: measured on the device; other kernels have their schedule's own. `in_place`: pairs that
/// the kernel's family allows to share memory.
Result<Kernel> emit_kernel(const Graph& group, llvm::ArrayRef<KernelPart> parts,
                           llvm::ArrayRef<Symbol> symbols, const DeviceDescription& device,
                           const std::optional<Overlap>& overlap = {}, const TunedForms& forms = {},
                           llvm::ArrayRef<InPlace> in_place = {});

}  // namespace sinter
