// How the program ends when memory runs out.
#pragma once

#include <new>

namespace sinter {

/// An allocation that fails ends the program with exit code 6 and one line, whichever thread asked,
/// unless its caller reports it (ir/allocation_may_fail.h). The line says how much was asked for,
/// as the program's operator new, which this file replaces, tells it; containers of LLVM's do not.
void set_up_memory();

/// Prints the line and ends the program at once.
[[noreturn]] void end_without_memory(const std::bad_alloc& error);

}  // namespace sinter
