// Which functions of other libraries a loaded library calls.
#pragma once

namespace sinter {

/// Makes the library behind `handle` (of dlopen, loaded for as long as the program runs) call
/// `replacement` wherever it calls the function `name` of another library: it rewrites the
/// addresses in the library's own tables. Everything else in the process goes on calling the
/// original. Returns how many addresses were rewritten; 0 where the library does not import `name`,
/// or where the tables cannot be found or written.
///
/// A library whose tables the loader wrote for 64-bit ELF with addends (x86-64, AArch64); the
/// source is the ELF specification, chapter 5, and its processor supplements.
int replace_import(void* handle, const char* name, void* replacement);

}  // namespace sinter
