// Reports of this machine's devices, compiler and cache of compiled kernels.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "driver/board.h"

namespace sinter {

/// The named devices that plans can be made for, and which CUDA libraries are here.
std::string devices_text();
std::string devices_json();

/// Measures every GPU of this machine and keeps the rates, by the name of the board; boards of one
/// name once. Errors: no GPU (ExitCode::device), no place to keep them.
Result<std::vector<BoardRates>> measure_devices(
    const std::function<void(const std::string&)>& on_stage);
std::string rates_text(const std::vector<BoardRates>& rates);
std::string rates_json(const std::vector<BoardRates>& rates);

/// "DIR: 12 kernels, 1.2 MB".
Result<std::string> cache_status();
/// Removes all entries; says how many there were.
Result<std::string> clear_cache();

}  // namespace sinter
