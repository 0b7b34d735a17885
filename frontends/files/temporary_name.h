// Names of files and folders under construction beside the place that they will take:
// TARGET.PID.N.tmp, PID the process and N a number of its own.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <sys/types.h>

#include <string>

namespace sinter {

/// Calls `take(name)` with names for `target` until it succeeds or fails otherwise than by EEXIST;
/// the name, or "" with errno. First removes what killed processes left beside `target`: files or
/// folders, as `kind` (S_IFREG, S_IFDIR) says, of exactly such a name that belong to this user,
/// whose process is gone and that nobody has locked. What cannot be removed stays.
std::string take_temporary_name(const std::string& target, mode_t kind,
                                llvm::function_ref<bool(const std::string&)> take);

/// Locks a new file or folder (flock) while the descriptor is open: a process that cannot see this
/// one's number, in another container, then takes it for no leftover. A file system without locks
/// is no failure: the process's number protects it.
void lock_temporary(int descriptor);

}  // namespace sinter
