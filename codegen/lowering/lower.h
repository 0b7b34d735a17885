// Module with groups → Program: kernels, GEMM calls, buffers, steps.
#pragma once

#include "device/device.h"
#include "device/tuned_form.h"
#include "ir/grouping.h"
#include "plan/program.h"

namespace sinter {

/// `groupings[i]` belongs to module.entries[i]. The module has passed run_passes. Equal groups
/// share a kernel. `fast`: groups compute as without_inner_roundings says. A group that no kernel
/// can be written for is an error that names its values. `forms`: measured on the device; other
/// kernels have their schedule's own. `device_inputs`: inputs with row numbers of checked ops are
/// looked at after a call (passes/fusion/check_rows.cpp). `overwritten`: an output's name, and the
/// name of the input whose memory the output may then have in a call where the kernels allow it
/// (plan/shared_outputs.h).
Result<Program> lower(const Module& module, llvm::ArrayRef<Grouping> groupings,
                      const DeviceDescription& device, Numerics numerics = Numerics::strict,
                      const TunedForms& forms = {}, bool device_inputs = false,
                      llvm::ArrayRef<std::pair<std::string, std::string>> overwritten = {});

}  // namespace sinter
