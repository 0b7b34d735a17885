// Static objects that a thread may still use while the process ends.
#pragma once

#include <type_traits>

namespace sinter {

/// The object that `make` returns, for a static reference to it. It is never destroyed: exit() runs
/// destructors of static objects while other threads work. tests/layers finds every other static
/// object with a destructor.
template <typename Make>
std::invoke_result_t<Make>& never_destroyed(Make make) {
  return *new std::invoke_result_t<Make>(make());
}

}  // namespace sinter
