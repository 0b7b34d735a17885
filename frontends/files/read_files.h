// The files that a command has read, which it must not replace.
#pragma once

struct stat;

namespace sinter {

/// From now on every file that BoundedFile opens is an input. The program calls it when a command
/// begins; the process of a library runs no single command and does not.
void remember_inputs();

void note_input(const struct stat& file);
/// By any of its names: a link is the same file.
bool is_input(const struct stat& file);

}  // namespace sinter
