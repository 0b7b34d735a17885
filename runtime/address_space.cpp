#include "runtime/address_space.h"

#include <sys/mman.h>

namespace sinter {

bool has_address_space(size_t bytes) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  ::munmap(memory, bytes);
  return true;
}

Status require_address_space(std::string_view user, size_t bytes) {
  if (has_address_space(bytes)) return {};
  return fail(fmt::format("{} takes {} MiB of address space, and there is less", user, bytes >> 20),
              {}, "raise the limit (ulimit -v)", ExitCode::out_of_memory);
}

}  // namespace sinter
