// Device capabilities, by name. Compute capabilities are compared here and nowhere else.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sinter {

struct Capabilities {
  bool async_copy = false;       // copies into shared memory that their thread waits for (cp.async)
  bool mma = false;              // products of a warp: mma.m16n8k16 of f16 and bf16
  bool bf16_arithmetic = false;  // rounding to bf16 and to pairs; minimum and maximum that keep NaN
  bool fp8_conversion = false;   // of e4m3 pairs to f16 pairs
  bool clusters = false;         // of thread blocks
  bool pdl = false;              // programmatic dependent launch
  bool bulk_copy = false;        // copies that a barrier counts (cp.async.bulk)
  bool wgmma = false;            // products of four warps

  friend bool operator==(const Capabilities&, const Capabilities&) = default;
};

/// The capabilities of an architecture as NVRTC names it: "sm_80", "sm_90a"; none for other names.
Capabilities capabilities_of(std::string_view arch);

/// "SINTER_HAS_PDL", ...: the macros that kernel text sees as 1, one for each thing that the device
/// can do. The device is the one that runs the kernel: text of a plan for another is compiled for
/// it, and must wait for the kernels ahead wherever launches overlap.
std::vector<std::string> kernel_macros(const Capabilities& has);

}  // namespace sinter
