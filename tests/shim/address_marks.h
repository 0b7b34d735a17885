// Memory marked as accessible or not, for AddressSanitizer.
#pragma once

#include <cstddef>

namespace sinter {

/// Where AddressSanitizer's library is in the process, linked to it or loaded before it for
/// sanitized kernel text: an access to a poisoned region ends the process. Nothing elsewhere.
void poison(const void* address, size_t bytes);
void unpoison(const void* address, size_t bytes);
/// Whether a byte of these is poisoned, or is no memory of a variable.
bool is_poisoned(const void* address, size_t bytes);

}  // namespace sinter
