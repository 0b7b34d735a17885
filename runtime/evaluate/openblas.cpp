#include "runtime/evaluate/openblas.h"

#include <sched.h>

#include <condition_variable>
#include <mutex>

#include "ir/never_destroyed.h"
#include "runtime/address_space.h"
#include "runtime/dynamic_library.h"

#ifdef SINTER_OPENBLAS_LINKED
// The library's own start, which cmake/SinterOpenBlas.cmake takes out of the start of the process.
extern "C" void gotoblas_init();
#endif

namespace sinter {
namespace {

constexpr const char* kName = "OpenBLAS, which computes products of matrices,";
constexpr size_t kLibraryBytes = size_t{64} << 20, kBufferBytes = size_t{136} << 20;

/// While one lives, this thread has one processor. OpenBLAS, when it begins, makes a thread with a
/// buffer for each further one.
class OneProcessor {
 public:
  OneProcessor() {
    if (::sched_getaffinity(0, sizeof before_, &before_) != 0) return;
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++i)
      if (CPU_ISSET(i, &before_)) CPU_SET(i, &one);
    changed_ = ::sched_setaffinity(0, sizeof one, &one) == 0;
  }
  ~OneProcessor() {
    if (changed_) ::sched_setaffinity(0, sizeof before_, &before_);
  }
  OneProcessor(const OneProcessor&) = delete;

 private:
  cpu_set_t before_;
  bool changed_ = false;
};

struct OpenBlasFunctions : OpenBlas {
  decltype(&openblas_set_num_threads) set_threads = nullptr;
};

#ifndef SINTER_OPENBLAS_LINKED
constexpr LibraryFunction<OpenBlasFunctions> kOpenBlasFunctions[] = {
    {"cblas_sgemm", set_function<&OpenBlasFunctions::sgemm>},
    {"cblas_dgemm", set_function<&OpenBlasFunctions::dgemm>},
    {"openblas_set_num_threads", set_function<&OpenBlasFunctions::set_threads>},
};
#endif

Result<OpenBlas> load() {
  const OneProcessor one_processor;
#ifdef SINTER_OPENBLAS_LINKED
  gotoblas_init();
  const OpenBlasFunctions library{{cblas_sgemm, cblas_dgemm}, openblas_set_num_threads};
#else
  SINTER_LET(file, open_library(kName, {"libopenblas.so.0", SINTER_OPENBLAS_FILE},
                                "install OpenBLAS (Debian: libopenblas0)"));
  SINTER_LET(library, file.functions(kOpenBlasFunctions, "OpenBLAS", "install a newer one"));
#endif
  library.set_threads(1);  // several would cut a sum where their number says
  return library;
}

class Products {
 public:
  Result<const OpenBlas*> begin() {
    std::unique_lock lock(mutex_);
    SINTER_TRY(load_library());
    if (running_ == buffers_) {
      Status room = require_address_space(kName, kBufferBytes);
      if (!room && buffers_ == 0) return tl::make_unexpected(std::move(room.error()));
      if (room) ++buffers_;
    }
    one_ended_.wait(lock, [&] { return running_ < buffers_; });
    ++running_;
    return &*library_;
  }
  void end() {
    {
      const std::lock_guard lock(mutex_);
      --running_;
    }
    one_ended_.notify_one();
  }

 private:
  Status load_library() {
    if (library_) return {};
    SINTER_TRY(require_address_space(kName, kLibraryBytes + kBufferBytes));
    SINTER_LET(library, load());
    library_ = library;
    return {};
  }

  std::mutex mutex_;
  std::condition_variable one_ended_;
  std::optional<OpenBlas> library_;
  int running_ = 0, buffers_ = 0;  // buffers_: products that were computed at a time, at most
};

Products& products() {
  static auto& products = never_destroyed([] { return Products(); });
  return products;
}

}  // namespace

Result<OpenBlasCall> OpenBlasCall::begin() {
  SINTER_LET(library, products().begin());
  return OpenBlasCall(library);
}

OpenBlasCall::OpenBlasCall(OpenBlasCall&& other) noexcept
    : library_(std::exchange(other.library_, nullptr)) {}

OpenBlasCall::~OpenBlasCall() {
  if (library_) products().end();
}

}  // namespace sinter
