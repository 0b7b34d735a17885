#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/Support/ErrorHandling.h>

#include <cstdlib>
#include <cstring>

#include "api/border.h"
#include "ir/never_destroyed.h"

namespace sinter {
namespace {

static_assert(SINTER_CODE_INTERNAL_ERROR == static_cast<int>(ExitCode::internal_error) &&
              SINTER_CODE_USAGE == static_cast<int>(ExitCode::usage) &&
              SINTER_CODE_CHECK_FAILED == static_cast<int>(ExitCode::check_failed) &&
              SINTER_CODE_BAD_INPUT == static_cast<int>(ExitCode::bad_input) &&
              SINTER_CODE_DEVICE == static_cast<int>(ExitCode::device) &&
              SINTER_CODE_OUT_OF_MEMORY == static_cast<int>(ExitCode::out_of_memory) &&
              SINTER_CODE_CANCELLED == static_cast<int>(ExitCode::cancelled));

/// Errors of the rooms name options of the program `sinter`: what the same is here.
constexpr std::pair<std::string_view, std::string_view> kOptions[] = {
    {"arch", "option target"},
    {"chat-template", "option chat-template"},
    {"device", "device"},
    {"dtype", "option dtype"},
    {"ignore-key", "option ignore-key"},
    {"inputs", "sinter_call_input"},
    {"kv", "option kv"},
    {"numerics", "option numerics"},
    {"phase", "option entries"},
    {"random-weights", "option random-weights"},
    {"recompile", "option recompile"},
    {"symbol", "a symbol's value"},
    {"temperature", "option temperature"},
    {"top-k", "option top-k"},
    {"top-p", "option top-p"},
    {"truncate", "option truncate"},
    {"weights", "option weights"},
};

/// `text` with "--NAME" of the table in the words of this interface.
std::string without_flags(std::string_view text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const size_t flag = std::min(text.find("--", at), text.size());
    result += text.substr(at, flag - at);
    if (flag == text.size()) break;
    const size_t begin = flag + 2;
    size_t end = begin;
    while (end < text.size() && ((text[end] >= 'a' && text[end] <= 'z') || text[end] == '-')) ++end;
    const auto option = llvm::find_if(
        kOptions, [&](const auto& one) { return one.first == text.substr(begin, end - begin); });
    result += option == std::end(kOptions) ? text.substr(flag, end - flag) : option->second;
    at = end;
  }
  return result;
}

/// For the moment in which there is no memory for another one.
sinter_error& no_memory() {
  static auto& error = never_destroyed([] {
    return sinter_error{{"out of memory", {}, {}, ExitCode::out_of_memory}, "out of memory"};
  });
  return error;
}
[[maybe_unused]] const sinter_error& made_early = no_memory();

/// A container of LLVM's found no memory. They leave themselves whole where this throws, but for
/// maps that grow (DenseMap), which must not have elements with destructors.
[[noreturn]] void throw_from_llvm(void*, const char*, bool) { throw std::bad_alloc(); }
[[maybe_unused]] const bool handler_installed = [] {
  llvm::install_bad_alloc_error_handler(throw_from_llvm);
  return true;
}();

/// A portable build has an unwinder of its own, which the first exception sets up. A thread that is
/// ended before that (pthread_exit) unwinds with the system's, and this one's tables are empty.
[[maybe_unused]] const bool unwinder_set_up = [] {
  try {
    throw 0;
  } catch (int) {
    return true;
  }
}();

template <typename T>
Result<T*> copy_items(const T* items, size_t count, size_t zeros) {
  auto* copy = static_cast<T*>(std::calloc(count + zeros, sizeof(T)));
  if (!copy) return fail("out of memory", {}, {}, ExitCode::out_of_memory);
  if (count > 0) std::memcpy(copy, items, count * sizeof(T));
  return copy;
}

}  // namespace

sinter_error* to_c(const Error& error) noexcept {
  try {
    Error told = error;
    if (told.where.starts_with("--")) told.where = without_flags(told.where);
    told.hint = without_flags(told.hint);
    const std::string message = told.message();
    return new sinter_error{std::move(told), message};
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
  return error ? static_cast<sinter_code>(static_cast<int>(error->error.code)) : SINTER_CODE_NONE;
}
const char* sinter_error_message(const sinter_error* error) {
  return error ? error->message.c_str() : "";
}
const char* sinter_error_what(const sinter_error* error) {
  return error ? error->error.what.c_str() : "";
}
const char* sinter_error_where(const sinter_error* error) {
  return error ? error->error.where.c_str() : "";
}
const char* sinter_error_hint(const sinter_error* error) {
  return error ? error->error.hint.c_str() : "";
}
void sinter_error_free(sinter_error* error) {
  if (error != &no_memory()) free_handle(error);
}

void sinter_free(void* memory) { std::free(memory); }
