#include "runtime/cuda/gemm_tuner.h"

#include <algorithm>
#include <array>
#include <span>

#include "runtime/cuda/known_product.h"
#include "runtime/evaluate/host_view.h"

namespace sinter {
namespace {

// Products of one measurement, in one graph so that the host's launches take no part.
constexpr int kLaunches = 16;
constexpr int kMeasurements = 5;
// A candidate whose first run takes so much longer than the best one's mean is not measured
// further. The constant covers what a single launch costs.
constexpr double kHopeless = 3.0, kLaunchSeconds = 30e-6;

constexpr size_t kPatternBytes = size_t{1} << 20;

/// Random bytes that are finite in every float type: the upper byte of each half word, which holds
/// the exponent of an f16, a bf16 or half of the f32s, stays below 1 in f16; in f32 the other half
/// words are low bits.
std::vector<std::byte> random_pattern() {
  std::vector<std::byte> bytes(kPatternBytes);
  uint64_t state = 0x9E3779B97F4A7C15;
  for (size_t i = 0; i < bytes.size(); i += 2) {
    state = state * 6364136223846793005 + 1442695040888963407;
    const uint64_t bits = state >> 33;
    const uint64_t magnitude = 0x2800 + bits % 0x1400;  // 2^-5 .. 1 as f16
    const uint64_t word = magnitude | (bits >> 16 & 1) << 15;
    bytes[i] = static_cast<std::byte>(word & 0xff);
    bytes[i + 1] = static_cast<std::byte>(word >> 8);
  }
  return bytes;
}

class Tuner {
 public:
  Tuner(CudaDevicePtr device, const GemmProblem& problem)
      : device_(std::move(device)), problem_(problem) {}

  /// Operands for enough places that together do not fit into the second-level cache, or for each
  /// launch one.
  Status make_operands() {
    SINTER_LET(stream, CudaStream::create(device_));
    stream_ = std::move(stream);
    SINTER_LET(begin, CudaEvent::create(device_));
    begin_ = std::move(begin);
    SINTER_LET(end, CudaEvent::create(device_));
    end_ = std::move(end);

    size_t bytes = 0;
    const auto reserve = [&](DType dtype, int64_t elements, int64_t alignment) {
      // At a multiple of `alignment` that is none of twice that.
      const size_t at = bytes + (alignment < kMaxAlignment ? static_cast<size_t>(alignment) : 0);
      bytes = aligned_bytes(at + static_cast<size_t>(storage_bytes(dtype, elements)));
      return at;
    };
    const GemmProblem& p = problem_;
    const size_t a = reserve(p.a.dtype, p.span_a(), p.a.alignment);
    const size_t b = reserve(p.b.dtype, p.span_b(), p.b.alignment);
    const size_t c = reserve(p.c.dtype, p.span_c(), p.c.alignment);
    const size_t bias = p.bias ? reserve(p.bias->dtype, p.n, p.bias->alignment) : 0;

    const size_t residual = p.residual ? reserve(p.c.dtype, p.span_c(), *p.residual) : 0;

    const size_t cache = 2 * device_->l2_bytes();
    const size_t places = std::clamp<size_t>(cache / bytes + 1, 1, kLaunches);
    SINTER_LET(memory, CudaMemory::allocate(device_, places * bytes, "tuning a matrix product"));
    memory_ = std::move(memory);
    SINTER_LET(flushed, CudaMemory::allocate(device_, cache, "emptying the cache"));
    flushed_ = std::move(flushed);
    SINTER_TRY(fill());
    for (size_t i = 0; i < places; ++i) {
      const CudaAddress at = memory_.address() + i * bytes;
      places_.push_back(
          {at + a, at + b, at + c, p.bias ? at + bias : 0, p.residual ? at + residual : 0});
    }
    return {};
  }

  /// Seconds per product, or nothing where that is surely more than `best` (0: none yet).
  Result<std::optional<double>> measure(const GemmCandidate& candidate, double best) {
    // The first run may load code.
    SINTER_TRY(candidate(places_[0], stream_));
    SINTER_LET(once, time([&] { return candidate(places_[0], stream_); }));
    if (best != 0 && once > kHopeless * best + kLaunchSeconds) return std::optional<double>();
    SINTER_LET(graph, CudaGraph::record(stream_, [&]() -> Status {
                 for (size_t i = 0; i < kLaunches; ++i)
                   SINTER_TRY(candidate(places_[i % places_.size()], stream_));
                 return {};
               }));
    SINTER_TRY(graph.launch(stream_));
    std::array<double, kMeasurements> seconds;
    for (double& measured : seconds) {
      SINTER_LET(all, time([&] { return graph.launch(stream_); }));
      measured = all / kLaunches;
    }
    std::sort(seconds.begin(), seconds.end());
    return std::optional(seconds[kMeasurements / 2]);
  }

  /// Whether the candidate computes a known product; an error that says what it gave. Leaves the
  /// operands as measure() needs them.
  Status verify(const GemmCandidate& candidate) {
    const std::optional<KnownProduct> known = known_product(problem_);
    if (!known) return {};
    const GemmPlace& place = places_[0];
    const GemmProblem& p = problem_;
    SINTER_TRY(fill_with(place.a, p.a.dtype, p.span_a(), known->a));
    SINTER_TRY(fill_with(place.b, p.b.dtype, p.span_b(), 1));
    if (p.bias) SINTER_TRY(fill_with(place.bias, p.bias->dtype, p.n, known->added));
    if (p.residual) SINTER_TRY(fill_with(place.residual, p.c.dtype, p.span_c(), known->added));
    std::vector<std::byte> c(static_cast<size_t>(storage_bytes(p.c.dtype, p.span_c())));
    SINTER_TRY(stream_.fill(place.c, std::to_integer<unsigned char>(kUnwritten), c.size()));
    SINTER_TRY(candidate(place, stream_));
    SINTER_TRY(stream_.copy_to_host(c, place.c));
    SINTER_TRY(fill());
    return check_known_product(problem_, *known, c);
  }

  /// Waits for what failed candidates have left.
  Status settle() { return stream_.synchronize("tuning product " + problem_.key()); }

 private:
  Status fill() {
    const std::vector<std::byte> pattern = random_pattern();
    SINTER_TRY(repeat(pattern, memory_.address(), memory_.bytes()));
    return settle();
  }

  /// `elements` equal ones.
  Status fill_with(CudaAddress to, DType dtype, int64_t elements, float value) {
    const auto bytes = static_cast<size_t>(storage_bytes(dtype, elements));
    const auto size = static_cast<size_t>(whole_bytes(dtype));
    std::vector<std::byte> pattern(std::min(kPatternBytes, bytes) / size * size);
    const std::vector<float> values(pattern.size() / size, value);
    store_run(values.data(), static_cast<int64_t>(values.size()), storage_of(dtype),
              pattern.data());
    SINTER_TRY(repeat(pattern, to, bytes));
    return settle();
  }

  /// The pattern, again and again, in the `bytes` from `to` on. It must stay until the copy is
  /// done.
  Status repeat(const std::vector<std::byte>& pattern, CudaAddress to, size_t bytes) {
    size_t filled = std::min(pattern.size(), bytes);
    if (filled == 0) return {};
    SINTER_TRY(stream_.copy_to_device(to, std::span(pattern).first(filled)));
    while (filled < bytes) {
      const size_t more = std::min(filled, bytes - filled);
      SINTER_TRY(stream_.copy_on_device(to + filled, to, more));
      filled += more;
    }
    return {};
  }

  template <typename Work>
  Result<double> time(Work&& work) {
    SINTER_TRY(stream_.fill(flushed_.address(), 0, flushed_.bytes()));
    SINTER_TRY(begin_.record(stream_));
    SINTER_TRY(work());
    SINTER_TRY(end_.record(stream_));
    SINTER_TRY(settle());
    return end_.seconds_since(begin_);
  }

  CudaDevicePtr device_;
  const GemmProblem& problem_;
  CudaStream stream_;
  CudaEvent begin_, end_;
  CudaMemory memory_, flushed_;
  std::vector<GemmPlace> places_;
};

}  // namespace

Result<FastestGemm> tune_gemm(CudaDevicePtr device, const GemmProblem& problem,
                              const std::vector<GemmCandidate>& candidates) {
  Tuner tuner(std::move(device), problem);
  SINTER_TRY(tuner.make_operands());
  Status failed = fail("no candidate", problem.key(), {}, ExitCode::internal_error);
  std::vector<bool> dropped(candidates.size());
  std::vector<std::optional<double>> seconds(candidates.size());
  for (;;) {
    // A round measures what an earlier one gave up beside a candidate that is dropped now.
    std::optional<FastestGemm> best;
    const auto consider = [&](size_t i) {
      if (!dropped[i] && seconds[i] && (!best || *seconds[i] < best->seconds))
        best = FastestGemm{i, *seconds[i]};
    };
    for (size_t i = 0; i < candidates.size(); ++i) consider(i);
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (dropped[i] || seconds[i]) continue;
      Result<std::optional<double>> measured =
          tuner.measure(candidates[i], best ? best->seconds : 0);
      SINTER_TRY(tuner.settle());
      if (measured) {
        seconds[i] = *measured;
        consider(i);
      } else {
        failed = tl::make_unexpected(std::move(measured.error()));
        dropped[i] = true;
      }
    }
    if (!best) break;
    Status right = tuner.verify(candidates[best->candidate]);
    SINTER_TRY(tuner.settle());
    if (right) return *best;
    failed = std::move(right);
    dropped[best->candidate] = true;
  }
  failed.error().what =
      fmt::format("none of {} implementations computes this product; the last: {}",
                  candidates.size(), failed.error().what);
  return tl::make_unexpected(std::move(failed.error()));
}

}  // namespace sinter
