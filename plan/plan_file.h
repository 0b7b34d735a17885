// plan.json: a Program as text. Deterministic; the CUDA text of the kernels stands in files of its
// own, named by kernel_path() and tied to the plan by a hash.
#pragma once

#include <string>
#include <string_view>

#include "plan/program.h"

namespace sinter {

inline constexpr std::string_view kPlanFormat = "sinter.plan";
/// Major version of the format; a reader refuses any other. From 2 on kernels may wait for the
/// kernels before them by themselves (kernels/common/launch.cuh), from 3 on they say so: launches
/// overlap; from 4 on they say what they read before they wait; from 5 on launches say from how
/// many items on they have no clusters, and items are a cluster's; from 7 on a buffer of the arena
/// has a slot instead of an offset; from 8 on the text of a kernel states its launch
/// (kernel_text.h); from 9 on ops name their order; from 10 on headers of
/// kernels have the names of their families' orders.
inline constexpr int64_t kPlanMajor = 10;

/// plan.json: format and required features, version of the library, fingerprint of the weights;
/// symbols, weights, states and kernels' groups as text IR; buffers, steps and launch shapes. The
/// names of the kernels must be distinct.
std::string write_plan(const Program& program);

/// Reads plan.json, validates every id and size and proves the plan safe (checker.h). The kernels
/// come without source, but with its hash. Errors carry `file` and a JSON pointer.
Result<Program> read_plan(std::string_view text, const std::string& file = "plan.json");

/// Where the folder of a plan keeps the kernel's CUDA text: "kernels/NAME.cu".
std::string kernel_path(const Kernel& kernel);
/// XXH3 of a text, 32 hexadecimal digits.
std::string content_hash(std::string_view text);
/// content_hash() of the kernel's text, which a kernel that was read from a plan may lack.
std::string text_hash(const Kernel& kernel);
/// Gives a kernel that was read without source its text, if that is the text of the plan and states
/// what the plan says of the kernel (kernel_text.h).
Status attach_source(Program& program, size_t kernel, std::string source);

/// Hash of the weights' names, types and functions: equal fingerprints mean that weights made for
/// one plan serve the other.
std::string weights_fingerprint(const Program& program);

}  // namespace sinter
