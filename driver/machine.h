// Reports of this machine's devices, compiler and cache of compiled kernels.
#pragma once

#include <string>

#include "ir/error.h"

namespace sinter {

/// The named devices that plans can be made for, and which CUDA libraries are here.
std::string devices_text();
std::string devices_json();

/// "DIR: 12 kernels, 1.2 MB".
Result<std::string> cache_status();
/// Removes all entries; says how many there were.
Result<std::string> clear_cache();

}  // namespace sinter
