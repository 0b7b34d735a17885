#include <cstdlib>
#include <cstring>

#include "api/border.h"

namespace sinter {
namespace {

static_assert(SINTER_CODE_INTERNAL_ERROR == static_cast<int>(ExitCode::internal_error) &&
              SINTER_CODE_USAGE == static_cast<int>(ExitCode::usage) &&
              SINTER_CODE_CHECK_FAILED == static_cast<int>(ExitCode::check_failed) &&
              SINTER_CODE_BAD_INPUT == static_cast<int>(ExitCode::bad_input) &&
              SINTER_CODE_DEVICE == static_cast<int>(ExitCode::device) &&
              SINTER_CODE_OUT_OF_MEMORY == static_cast<int>(ExitCode::out_of_memory) &&
              SINTER_CODE_CANCELLED == static_cast<int>(ExitCode::cancelled));

/// For the moment in which there is no memory for another one.
sinter_error& no_memory() {
  static sinter_error error{{"not enough memory", {}, {}, ExitCode::out_of_memory},
                            "not enough memory"};
  return error;
}
[[maybe_unused]] const sinter_error& made_early = no_memory();

template <typename T>
Result<T*> copy_items(const T* items, size_t count, size_t zeros) {
  auto* copy = static_cast<T*>(std::calloc(count + zeros, sizeof(T)));
  if (!copy) return fail("not enough memory", {}, {}, ExitCode::out_of_memory);
  if (count > 0) std::memcpy(copy, items, count * sizeof(T));
  return copy;
}

}  // namespace

sinter_error* to_c(const Error& error) noexcept {
  try {
    return new sinter_error{error, error.message()};
  } catch (const std::exception&) {
    return &no_memory();
  }
}

Status require(const void* parameter, const char* name) {
  if (parameter) return {};
  return fail(fmt::format("the parameter `{}` is null", name), {}, {}, ExitCode::usage);
}

Result<char*> copy_text(std::string_view text) { return copy_items(text.data(), text.size(), 1); }

Result<int32_t*> copy_tokens(llvm::ArrayRef<int32_t> tokens) {
  return copy_items(tokens.data(), tokens.size(), 1);
}

}  // namespace sinter

using namespace sinter;

const char* sinter_version(void) { return SINTER_VERSION; }

sinter_code sinter_error_code(const sinter_error* error) {
  return static_cast<sinter_code>(static_cast<int>(error->error.code));
}
const char* sinter_error_message(const sinter_error* error) { return error->message.c_str(); }
const char* sinter_error_what(const sinter_error* error) { return error->error.what.c_str(); }
const char* sinter_error_where(const sinter_error* error) { return error->error.where.c_str(); }
const char* sinter_error_hint(const sinter_error* error) { return error->error.hint.c_str(); }
void sinter_error_free(sinter_error* error) {
  if (error != &no_memory()) delete error;
}

void sinter_free(void* memory) { std::free(memory); }
