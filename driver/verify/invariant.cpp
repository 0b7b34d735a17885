#include "driver/verify/invariant.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "driver/ready_plan.h"
#include "driver/verify/invariant_parts.h"
#include "runtime/clock.h"
#include "runtime/compare.h"

namespace sinter {
namespace {

constexpr int64_t kGpuTokens = 640;  // three segments of keys (kernels/tiled_attention/choose.cpp)

std::span<const std::byte> bytes_of(const HostTensor& tensor, int64_t row) {
  const size_t bytes = tensor.bytes.size() / static_cast<size_t>(tensor.dims[0]);
  return std::span(tensor.bytes.data(), tensor.bytes.size())
      .subspan(static_cast<size_t>(row) * bytes, bytes);
}

HostTensor row_of(const HostTensor& tensor, int64_t row) {
  const auto bytes = bytes_of(tensor, row);
  HostTensor one{tensor.dtype, tensor.dims, {}};
  one.dims[0] = 1;
  one.bytes.assign(bytes.begin(), bytes.end());
  return one;
}

}  // namespace

bool InvariantReport::passed() const {
  return llvm::all_of(ways, [](const InvariantWay& way) { return way.difference.empty(); });
}

int64_t InvarianceCheck::draw(int64_t least, int64_t most) {
  return least + static_cast<int64_t>(bits() % static_cast<uint64_t>(most - least + 1));
}

std::vector<int32_t> InvarianceCheck::text(int64_t tokens) {
  return random_ids(spec.vocabulary, tokens, bits() >> 1);
}

InvariantWay& InvarianceCheck::way(std::string_view name) {
  options.stage(std::string(name));
  for (InvariantWay& way : report.ways)
    if (way.name == name) return way;
  return report.ways.emplace_back(InvariantWay{std::string(name), 0, 0, {}});
}

Status InvarianceCheck::check_finite(const HostTensor& results) const {
  if (llvm::all_of(to_doubles(results), [](double x) { return std::isfinite(x); })) return {};
  return fail("results of a text are not finite: equal bits would prove nothing", program().name,
              "give weights with which the model computes numbers", ExitCode::check_failed);
}

Status compare_rows(const HostTensor& result, int64_t row, const HostTensor& alone, int64_t token,
                    int64_t count, std::string_view call, InvariantWay& way) {
  way.tokens += count;
  for (int64_t i = 0; i < count && way.difference.empty(); ++i) {
    if (std::ranges::equal(bytes_of(result, row + i), bytes_of(alone, token + i))) continue;
    const HostTensor got = row_of(result, row + i), expected = row_of(alone, token + i);
    SINTER_LET(bits, compare_bits(got, expected));
    SINTER_LET(far, distance(got, expected));
    way.difference =
        fmt::format("token {} {}: {} of {} elements differ, by up to {:.2g} ({} ulp)", token + i,
                    call, bits ? bits->count : 0, got.volume(), far.max_abs, far.max_ulp);
  }
  return {};
}

Result<InvariantReport> check_invariance(const Executable& executable, const ModelSpec& spec,
                                         const SelfOptions& options, const SelfLimits& limits) {
  InvariantReport report;
  report.dtype = spec.dtype;
  report.device = executable.device();
  const Clock::time_point begin = Clock::now();
  InvarianceCheck check{
      executable, spec, options, report, kGpuTokens, 0, std::mt19937_64(options.seed)};
  if (!check.on_gpu()) check.most_tokens = limits.invariant_tokens;
  check.work = check.on_gpu() ? int64_t{1} << 40
                              : affordable_tokens(executable.program(), limits.invariant_products);
  SINTER_TRY(spec.encoder ? check_encoder_ways(check) : check_decoder_ways(check));
  report.seconds = seconds_since(begin);
  return report;
}

Result<InvariantReport> verify_invariance(const std::string& path, const SelfOptions& options) {
  SINTER_LET(module, is_module(path));
  if (module)
    return fail("--invariant is checked on sequences of tokens, got a module", path,
                "leave out --invariant, or give a model", ExitCode::usage);
  options.stage("opening the model");
  SINTER_LET(model, open_model(path, options.open));
  if (!compile_options(model, options.compile).recipe.invariant)
    return fail("the plan was compiled without --invariant", path,
                "compile the model with it, or give the model itself", ExitCode::usage);
  options.stage("compiling");
  SINTER_LET(ready, make_ready(model, options.compile, *options.backend));
  return check_invariance(*ready.executable, *model.spec, options);
}

}  // namespace sinter
