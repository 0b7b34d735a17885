// Limits of the address space (ulimit -v), asked before a library that does not survive them.
#pragma once

#include <cstddef>
#include <string_view>

#include "ir/error.h"

namespace sinter {

/// Whether the process may map that number of bytes more.
bool has_address_space(size_t bytes);

/// An error, exit code 6, that says what `user` takes where it may not.
Status require_address_space(std::string_view user, size_t bytes);

}  // namespace sinter
