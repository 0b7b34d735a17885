#include "cli/memory.h"

#include <llvm/Support/ErrorHandling.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <exception>

#include "cli/output.h"
#include "driver/temporary_folder.h"
#include "ir/allocation_may_fail.h"
#include "ir/catch_all.h"

namespace sinter {
namespace {

/// Says how many bytes were asked for. Holds its text, since there may be no memory for another.
class FailedAllocation : public std::bad_alloc {
 public:
  explicit FailedAllocation(size_t bytes) {
    *fmt::format_to_n(text_.data(), text_.size() - 1, "{} bytes were asked for", bytes).out = 0;
  }
  const char* what() const noexcept override { return text_.data(); }

 private:
  std::array<char, 48> text_;
};

// Given back before the line is printed, which takes a few allocations.
constexpr size_t kReserve = size_t{256} << 10;
void* reserve = nullptr;

[[noreturn]] void end(std::string_view what) {
  static thread_local bool ending = false;
  if (ending) ::_exit(static_cast<int>(ExitCode::out_of_memory));
  ending = true;
  std::free(reserve);
  reserve = nullptr;
  remove_temporary_folders();
  print_error({fmt::format("out of memory: {}", what), "", "use smaller sizes, or more memory",
               ExitCode::out_of_memory});
  ::_exit(static_cast<int>(ExitCode::out_of_memory));
}

/// A container of LLVM's found no memory; it allocates by malloc, does not throw, and does not tell
/// how much it asked for.
[[noreturn]] void end_in_llvm(void*, const char*, bool) {
  end("a container found no room to grow");
}

/// An exception that nothing caught: of another thread than the main one.
[[noreturn]] void end_uncaught() {
  try {
    if (const std::exception_ptr error = std::current_exception()) std::rethrow_exception(error);
  } catch (const std::bad_alloc& error) {
    end_without_memory(error);
  } catch (const std::exception& error) {
    print_error({error.what(), "", "", ExitCode::internal_error});
  }
  SINTER_CATCH_ALL {}
  remove_temporary_folders();
  ::_exit(static_cast<int>(ExitCode::internal_error));
}

}  // namespace

void set_up_memory() {
  reserve = std::malloc(kReserve);
  llvm::install_bad_alloc_error_handler(end_in_llvm);
  std::set_terminate(end_uncaught);
}

void end_without_memory(const std::bad_alloc& error) { end(error.what()); }

}  // namespace sinter

// A sanitizer has an operator new of its own.
#ifndef __SANITIZE_ADDRESS__

namespace {

[[noreturn]] void failed(size_t bytes) {
  const sinter::FailedAllocation error(bytes);
  if (!sinter::AllocationMayFail::here()) sinter::end_without_memory(error);
  throw error;
}

void* aligned(size_t bytes, std::align_val_t alignment) noexcept {
  const auto multiple = static_cast<size_t>(alignment);
  const size_t whole = (bytes + multiple - 1) / multiple * multiple;
  if (whole < bytes) return nullptr;
  return std::aligned_alloc(multiple, whole > 0 ? whole : multiple);
}

}  // namespace

// The standard's forms for arrays call these.
void* operator new(size_t bytes) {
  if (void* memory = std::malloc(bytes > 0 ? bytes : 1)) return memory;
  failed(bytes);
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return std::malloc(bytes > 0 ? bytes : 1);
}
void* operator new(size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return aligned(bytes, alignment);
}

void* operator new(size_t bytes, std::align_val_t alignment) {
  if (void* memory = aligned(bytes, alignment)) return memory;
  failed(bytes);
}

void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }

#endif
