#include "runtime/cuda/ceiling.h"

#include <algorithm>
#include <span>

#include "runtime/cuda/gemm.h"
#include "runtime/cuda/kernel_compiler.h"
#include "runtime/cuda/launch.h"
#include "runtime/random_inputs.h"
#include "runtime/statistics.h"

namespace sinter {
namespace {

constexpr std::string_view kSource = R"(#include "kernels/common/bandwidth.cuh"
using namespace sinter;

extern "C" __global__ void __launch_bounds__(kBandwidthThreads)
ceiling_copy(const uint4* in, uint4* out, long long count) {
  copy_words(in, out, count);
}
extern "C" __global__ void __launch_bounds__(kBandwidthThreads)
ceiling_read(const uint4* in, unsigned* out, long long count, unsigned never) {
  read_words(in, out, count, never);
}
)";
constexpr size_t kWordBytes = 16;
constexpr unsigned kThreads = 256, kWordsPerBlock = 256 * 8;  // of bandwidth.cuh

// Calls of one repeat: enough to move kRepeatBytes, so that what a graph's launch costs is small
// beside them, within these bounds.
constexpr size_t kRepeatBytes = size_t{4} << 30;
constexpr size_t kFewestCalls = 8, kMaxCalls = 256;
constexpr size_t kFewestPlaces = 3, kCaches = 4;
constexpr int kProducts = 4;  // of one repeat
constexpr size_t kPatternElements = size_t{1} << 19;

/// Fills memory with bf16 numbers of a bell: bits that are finite and of ordinary size in every
/// float type.
Status fill_random(const CudaMemory& memory, const CudaStream& stream) {
  SINTER_LET(pattern, random_tensor(DType::bf16, {static_cast<int64_t>(kPatternElements)}, 1));
  size_t filled = std::min(pattern.bytes.size(), memory.bytes());
  SINTER_TRY(stream.copy_to_device(memory.address(), std::span(pattern.bytes).first(filled)));
  while (filled < memory.bytes()) {
    const size_t more = std::min(filled, memory.bytes() - filled);
    SINTER_TRY(stream.copy_on_device(memory.address() + filled, memory.address(), more));
    filled += more;
  }
  return stream.synchronize("filling memory");
}

Ceiling summarize(std::vector<double> seconds, double amount, std::string by) {
  const double middle = median(seconds);
  return {middle > 0 ? amount / middle : 0, amount, std::move(seconds), std::move(by)};
}

}  // namespace

/// Memory of the calls of one repeat.
struct CudaCeilings::Places {
  CudaMemory memory;
  size_t bytes = 0;             // of each place
  size_t count = 0, calls = 0;  // call i works at place i % count

  CudaAddress at(size_t call) const { return memory.address() + call % count * bytes; }
};

Result<CudaCeilings> CudaCeilings::create(CudaDevicePtr device,
                                          llvm::ArrayRef<EmbeddedHeader> kernel_library,
                                          const KernelCache& cache) {
  CudaCeilings ceilings;
  SINTER_LET(nvrtc, find_nvrtc());
  const KernelSource source{"ceilings", kSource};
  SINTER_LET(compiled, compile_cached(nvrtc, cache, source, kernel_library, device->arch()));
  SINTER_LET(library, CudaLibrary::load(device, compiled.cubins[0].bytes, source.name));
  SINTER_LET(copy, library.kernel("ceiling_copy"));
  SINTER_LET(read, library.kernel("ceiling_read"));
  SINTER_LET(stream, CudaStream::create(device));
  const size_t flushed = std::max<size_t>(kCaches * device->l2_bytes(), kWordBytes);
  SINTER_LET(memory, CudaMemory::allocate(device, aligned_bytes(flushed), "emptying the cache"));
  SINTER_TRY(fill_random(memory, stream));
  ceilings.device_ = std::move(device);
  ceilings.kernel_library_ = kernel_library;
  ceilings.library_ = std::move(library);
  ceilings.copy_ = copy;
  ceilings.read_ = read;
  ceilings.stream_ = std::move(stream);
  ceilings.flushed_ = std::move(memory);
  return ceilings;
}

Result<CudaCeilings::Places> CudaCeilings::make_places(size_t bytes) const {
  Places places;
  places.bytes = aligned_bytes(bytes);
  places.calls = std::clamp(kRepeatBytes / places.bytes, kFewestCalls, kMaxCalls);
  places.count =
      std::clamp(kCaches * device_->l2_bytes() / places.bytes + 1, kFewestPlaces, places.calls);
  SINTER_LET(memory, device_->memory());
  places.count = std::clamp<size_t>(memory.free / 2 / places.bytes, 1, places.count);
  SINTER_LET(allocated,
             CudaMemory::allocate(device_, places.count * places.bytes, "measuring a ceiling"));
  SINTER_TRY(fill_random(allocated, stream_));
  places.memory = std::move(allocated);
  return places;
}

Status CudaCeilings::launch(CudaApi::Kernel kernel, size_t words, void** parameters) const {
  const size_t blocks = (words + kWordsPerBlock - 1) / kWordsPerBlock;
  if (blocks > INT32_MAX)
    return fail(fmt::format("{} words exceed one launch", words), "measuring a ceiling");
  // Each call alone on the device: a ceiling is of whole kernels, one after another.
  return sinter::launch({.kernel = kernel,
                         .name = "of a ceiling",
                         .blocks = static_cast<unsigned>(blocks),
                         .threads = kThreads},
                        parameters, stream_);
}

Status CudaCeilings::launch_read(CudaAddress from, size_t bytes, CudaAddress out) const {
  // A sum that the random words do not have: then nothing is written.
  unsigned never = 0x9E3779B9;
  auto words = static_cast<long long>(bytes / kWordBytes);
  void* parameters[] = {&from, &out, &words, &never};
  return launch(read_, bytes / kWordBytes, parameters);
}

Status CudaCeilings::launch_copy(CudaAddress from, CudaAddress to, size_t bytes) const {
  auto words = static_cast<long long>(bytes / kWordBytes);
  void* parameters[] = {&from, &to, &words};
  return launch(copy_, bytes / kWordBytes, parameters);
}

Result<std::vector<double>> CudaCeilings::time_calls(size_t calls, const Call& call,
                                                     int repeats) const {
  SINTER_TRY(device_->make_current());
  SINTER_LET(begin, CudaEvent::create(device_));
  SINTER_LET(end, CudaEvent::create(device_));
  SINTER_LET(graph, CudaGraph::record(stream_, [&]() -> Status {
               for (size_t i = 0; i < calls; ++i) SINTER_TRY(call(i));
               return {};
             }));
  SINTER_TRY(graph.launch(stream_));
  std::vector<double> seconds;
  for (int i = 0; i < repeats; ++i) {
    // Reading leaves nothing in the cache that would have to be written back.
    SINTER_TRY(launch_read(flushed_.address(), flushed_.bytes(), flushed_.address()));
    SINTER_TRY(begin.record(stream_));
    SINTER_TRY(graph.launch(stream_));
    SINTER_TRY(end.record(stream_));
    SINTER_TRY(stream_.synchronize("measuring a ceiling"));
    SINTER_LET(all, end.seconds_since(begin));
    seconds.push_back(all / static_cast<double>(calls));
  }
  return seconds;
}

Result<Ceiling> CudaCeilings::copy(size_t bytes) const {
  const size_t half = bytes / 2 / kWordBytes * kWordBytes;
  if (half == 0)
    return fail(fmt::format("a copy that moves {} bytes", bytes), "measuring a ceiling");
  SINTER_LET(places, make_places(2 * aligned_bytes(half)));
  const size_t to = aligned_bytes(half);
  SINTER_LET(by_driver, time_calls(places.calls, [&](size_t i) {
               return stream_.copy_on_device(places.at(i) + to, places.at(i), half);
             }));
  SINTER_LET(by_kernel, time_calls(places.calls, [&](size_t i) {
               return launch_copy(places.at(i), places.at(i) + to, half);
             }));
  const double moved = 2 * static_cast<double>(half);
  Ceiling driver = summarize(std::move(by_driver), moved, "driver");
  Ceiling kernel = summarize(std::move(by_kernel), moved, "kernel");
  return driver.per_s > kernel.per_s ? driver : kernel;
}

Result<Ceiling> CudaCeilings::read(size_t bytes) const {
  const size_t whole = bytes / kWordBytes * kWordBytes;
  if (whole == 0) return fail(fmt::format("a read of {} bytes", bytes), "measuring a ceiling");
  SINTER_LET(places, make_places(whole));
  SINTER_LET(seconds, time_calls(places.calls, [&](size_t i) {
               return launch_read(places.at(i), whole, flushed_.address());
             }));
  return summarize(std::move(seconds), static_cast<double>(whole), "kernel");
}

Result<Ceiling> CudaCeilings::cached_read(size_t bytes) const {
  const size_t whole = bytes / kWordBytes * kWordBytes;
  if (whole == 0) return fail(fmt::format("a read of {} bytes", bytes), "measuring a ceiling");
  SINTER_LET(places, make_places(whole));
  SINTER_LET(seconds, time_calls(kMaxCalls, [&](size_t) {
               return launch_read(places.at(0), whole, flushed_.address());
             }));
  return summarize(std::move(seconds), static_cast<double>(whole), "kernel");
}

Result<double> CudaCeilings::launch_seconds() const {
  SINTER_LET(seconds, time_calls(kMaxCalls, [&](size_t) {
               return launch_read(flushed_.address(), kWordBytes, flushed_.address());
             }));
  return median(seconds);
}

Result<Ceiling> CudaCeilings::gemm(DType dtype, int64_t n, int repeats) const {
  if (!is_float(dtype))
    return fail(fmt::format("a product of {}", to_string(dtype)), "measuring a ceiling");
  if (n < 1 || n > 32768)
    return fail(fmt::format("a product of {0} x {0} matrices", n), "measuring a ceiling");
  SINTER_LET(gemm, CudaGemm::create(device_, kernel_library_, {}, GemmPolicy::tune));
  const size_t bytes = aligned_bytes(static_cast<size_t>(storage_bytes(dtype, n * n)));
  SINTER_LET(memory, CudaMemory::allocate(device_, 3 * bytes, "measuring matrix products"));
  SINTER_TRY(fill_random(memory, stream_));
  const CudaAddress at = memory.address();
  const GemmOperands operands{{at, dtype}, {at + bytes, dtype}, {at + 2 * bytes, dtype}, {}, 0};
  GemmStep step;
  step.a = {0, 0, n, 1};
  step.b = {1, 0, 1, n};
  step.c = {2, 0, n, 1};
  step.m = step.n = step.k = n;
  SINTER_TRY(gemm->prepare(step, operands, {}, {}));
  SINTER_LET(
      seconds,
      time_calls(
          kProducts, [&](size_t) { return gemm->run(step, operands, {}, {}, stream_); }, repeats));
  const bool library = llvm::any_of(gemm->record().choices, [](const auto& choice) {
    return choice.second.kind == GemmChoice::Kind::cublaslt;
  });
  const double side = static_cast<double>(n);
  return summarize(std::move(seconds), 2 * side * side * side,
                   library ? gemm->record().library : "kernel");
}

}  // namespace sinter
