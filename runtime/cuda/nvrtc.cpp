#include "runtime/cuda/nvrtc.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/ADT/StringRef.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>
#include <thread>

#include "device/capabilities.h"
#include "ir/guarded.h"
#include "runtime/address_space.h"
#include "runtime/foreign_call.h"

namespace sinter {
namespace {

// The library and what it takes to compile a kernel; it crashes where there is less.
constexpr size_t kAddressSpace = size_t{256} << 20;

constexpr int kCompilationFailed = 6;  // NVRTC_ERROR_COMPILATION

// The flags that the numerics contract fixes.
constexpr const char* kFlags[] = {"--fmad=false", "--ftz=false", "--prec-div=true",
                                  "--prec-sqrt=true", "--std=c++17"};

// Owns an NVRTC program.
struct OwnedProgram {
  const NvrtcApi& api;
  NvrtcApi::Program handle = nullptr;
  ~OwnedProgram() {
    if (handle != nullptr) api.destroy_program(&handle);
  }
};

// NVRTC's log of a failed compilation, at most 4 KiB of it.
std::string compilation_log(const OwnedProgram& program) {
  size_t size = 0;
  if (program.api.log_size(program.handle, &size) != 0 || size <= 1) return "no log";
  std::string log(size, '\0');
  if (program.api.log(program.handle, log.data()) != 0) return "no log";
  log.resize(size - 1);  // the terminating zero
  if (log.size() > 4096) log = log.substr(0, 4096) + "...";
  return log;
}

// Leaves the text in a new file of the folder for temporary ones and returns its path; "" if that
// cannot be done.
std::string keep_text(const KernelSource& source) {
  std::error_code error;
  std::string name(source.name.substr(0, 80));
  for (char& c : name)
    if (!llvm::isAlnum(c)) c = '_';
  constexpr std::string_view kEnding = ".cu";
  std::string path =
      (std::filesystem::temp_directory_path(error) / ("sinter-" + name + "-XXXXXX")).string();
  path += kEnding;
  const int file = error ? -1 : mkstemps(path.data(), static_cast<int>(kEnding.size()));
  if (file < 0) return {};
  const ssize_t written = ::write(file, source.text.data(), source.text.size());
  const bool whole = written == static_cast<ssize_t>(source.text.size());
  if (::close(file) == 0 && whole) return path;
  ::unlink(path.c_str());
  return {};
}

unsigned thread_count(unsigned asked, size_t jobs) {
  const unsigned processors = std::max(1u, std::thread::hardware_concurrency());
  return static_cast<unsigned>(std::min<size_t>(asked == 0 ? processors : asked, jobs));
}

/// Numbers of the sources, those first that take longest to compile as far as their text tells: a
/// thread that began the longest kernel last would be waited for alone. What is included is most of
/// the work.
std::vector<size_t> longest_first(llvm::ArrayRef<KernelSource> sources) {
  std::vector<std::pair<size_t, size_t>> work;  // includes, characters
  std::vector<size_t> order;
  for (const KernelSource& source : sources) {
    work.emplace_back(llvm::StringRef(source.text).count("#include"), source.text.size());
    order.push_back(order.size());
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return work[a] > work[b]; });
  return order;
}

}  // namespace

std::vector<std::string> nvrtc_options(const std::string& arch) {
  std::vector<std::string> options(std::begin(kFlags), std::end(kFlags));
  for (const std::string& macro : kernel_macros(capabilities_of(arch)))
    options.push_back("-D" + macro + "=1");
  options.push_back("--gpu-architecture=" + arch);
  return options;
}

Result<Cubin> compile_kernel(const NvrtcFile& nvrtc, const KernelSource& source,
                             llvm::ArrayRef<EmbeddedHeader> headers, const std::string& arch) {
  SINTER_TRY(require_address_space("NVRTC", kAddressSpace));
  SINTER_LET(loaded, load_nvrtc(nvrtc.path));
  const NvrtcApi& api = *loaded;
  const auto failed = [&](std::string_view act, int code) {
    return fail(fmt::format("NVRTC cannot {} kernel {} for {}: {}", act, source.name, arch,
                            api.error_string(code)),
                nvrtc.path, "choose an architecture that this CUDA toolkit knows",
                ExitCode::device);
  };

  // NVRTC takes C strings.
  const std::string text(source.text);
  llvm::SmallVector<std::string> owned;
  llvm::SmallVector<const char*> texts, names;
  owned.reserve(2 * headers.size());
  for (const EmbeddedHeader& header : headers) {
    texts.push_back(owned.emplace_back(header.text).c_str());
    names.push_back(owned.emplace_back(header.name).c_str());
  }
  const ForeignCall call;
  OwnedProgram program{api};
  if (int code = api.create_program(&program.handle, text.c_str(), "kernel.cu",
                                    static_cast<int>(headers.size()), texts.data(), names.data()))
    return failed("read", code);

  const std::vector<std::string> stated = nvrtc_options(arch);
  llvm::SmallVector<const char*> options;
  for (const std::string& option : stated) options.push_back(option.c_str());
  const int code =
      api.compile_program(program.handle, static_cast<int>(options.size()), options.data());
  if (code == kCompilationFailed) {
    const std::string kept = keep_text(source);
    return fail(fmt::format("generated kernel {} does not compile for {}: {}", source.name, arch,
                            compilation_log(program)),
                nvrtc.path,
                kept.empty()
                    ? "report this with the kernel's text"
                    : fmt::format("report this with the kernel's text, which is in {}", kept),
                ExitCode::internal_error);
  }
  if (code != 0) return failed("compile", code);

  size_t bytes = 0;
  if (int code = api.cubin_size(program.handle, &bytes)) return failed("finish", code);
  Cubin cubin{std::string(bytes, '\0')};
  if (int code = api.cubin(program.handle, cubin.bytes.data())) return failed("finish", code);
  return cubin;
}

Result<std::vector<Cubin>> compile_kernels(const NvrtcFile& nvrtc,
                                           llvm::ArrayRef<KernelSource> sources,
                                           llvm::ArrayRef<EmbeddedHeader> headers,
                                           const std::string& arch, unsigned threads) {
  std::vector<std::optional<Result<Cubin>>> results(sources.size());
  const std::vector<size_t> order = longest_first(sources);
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t k; (k = next.fetch_add(1)) < order.size();)
      results[order[k]] =
          guarded([&] { return compile_kernel(nvrtc, sources[order[k]], headers, arch); });
  };
  std::vector<std::thread> workers;
  for (unsigned i = 1; i < thread_count(threads, sources.size()); ++i) {
    try {
      workers.emplace_back(work);
    } catch (const std::system_error&) {
      break;  // the system gives no more threads: fewer do the work
    }
  }
  work();
  for (std::thread& worker : workers) worker.join();

  std::vector<Cubin> cubins;
  for (auto& result : results) {
    SINTER_TRY(*result);
    cubins.push_back(std::move(**result));
  }
  return cubins;
}

}  // namespace sinter
