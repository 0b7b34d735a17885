#include <algorithm>
#include <cmath>

#include "driver/text_table.h"
#include "driver/verify/parts.h"
#include "frontends/model/build_model.h"

namespace sinter {
namespace {

/// Largest difference that is allowed, as a share of the reference's largest magnitude: float32
/// sums of a few thousand terms in another order.
constexpr double kAllowedShare = 1e-4;
/// The same for 16-bit types, whose values are rounded after every op: in unit roundoffs.
constexpr double kAllowedRoundings = 8;

/// 0 for integers: they must be equal.
double allowed_share(DType dtype) {
  return dtype == DType::f32 ? kAllowedShare : kAllowedRoundings * unit_roundoff(dtype);
}

Result<std::vector<double>> floats(const TensorFile& file, const std::string& name) {
  SINTER_LET(tensor, file.read_tensor(name));
  if (tensor.dtype != FileDType::F32)
    return fail(
        fmt::format("tensor {} is {}, expected F32", printable(name), to_string(tensor.dtype)),
        file.path());
  std::vector<double> values(tensor.bytes.size() / sizeof(float));
  const auto* data = reinterpret_cast<const float*>(tensor.bytes.data());
  for (size_t i = 0; i < values.size(); ++i) values[i] = data[i];
  return values;
}

}  // namespace

Result<ReferenceFile> ReferenceFile::open(const std::string& path) {
  SINTER_LET(file, open_tensor_file(path));
  if (file.is_unnamed())
    return fail("the file has one tensor without a name, a reference has input_ids and others",
                path, "give a .npz: numpy.savez(FILE, input_ids=..., logits=...)");
  ReferenceFile reference(std::move(file));
  SINTER_LET(ids, reference.file_.read_tensor("input_ids"));
  if (ids.dims.size() != 2 || ids.dims[0] < 1 || ids.dims[1] < 1)
    return fail(fmt::format("input_ids has {}, expected [sequences, tokens], neither 0",
                            counted(ids.dims.size(), "axis", "axes")),
                path);
  auto tokens = to_i32(ids);
  if (!tokens) return fail("input_ids: " + tokens.error().what, path);
  for (int64_t s = 0; s < ids.dims[0]; ++s)
    reference.sequences_.emplace_back(tokens->begin() + s * ids.dims[1],
                                      tokens->begin() + (s + 1) * ids.dims[1]);
  if (reference.file_.entry("greedy")) {
    SINTER_LET(greedy, reference.file_.read_tensor("greedy"));
    auto expected = to_i32(greedy);
    if (!expected) return fail("greedy: " + expected.error().what, path);
    reference.greedy_ = std::move(*expected);
  }
  return reference;
}

Status compare_outputs(const TensorFile& file, const Entry& entry,
                       llvm::ArrayRef<std::string> names, llvm::ArrayRef<HostTensor> outputs,
                       DTypeReport& report) {
  for (size_t i = 0; i < names.size(); ++i) {
    const FileTensor* tensor = tensor_of(file, entry, names[i]);
    if (!tensor || llvm::is_contained(names.take_front(i), names[i])) continue;
    const HostTensor& output = outputs[i];
    if (!reads_as(tensor->dtype, output.dtype) || tensor->dims != output.dims)
      return fail(
          fmt::format("tensor {} is {} [{}], output %{} of entry {} is {} [{}]",
                      printable(tensor->name), to_string(tensor->dtype),
                      fmt::join(tensor->dims, ", "), printable(names[i]), printable(entry.name),
                      to_string(output.dtype), fmt::join(output.dims, ", ")),
          file.path(), "correct the reference, or give the inputs that it was made with");
    SINTER_LET(expected, make_tensor(output.dtype, output.dims));
    SINTER_TRY(file.read(tensor->name, expected.bytes));
    double largest = 0;
    for (const double value : to_doubles(expected))
      if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
    SINTER_LET(apart, distance(output, expected));
    ValueCheck check{fmt::format("{} ({} %{})", printable(tensor->name), printable(entry.name),
                                 printable(names[i])),
                     apart.max_abs, apart.max_ulp, allowed_share(output.dtype) * largest, false};
    check.passed = check.max_abs <= check.allowed;
    report.reference.push_back(std::move(check));
  }
  return {};
}

Status ReferenceFile::check_values(const HostTensor& value, const std::string& tensor,
                                   const std::string& name, DTypeReport& report) const {
  if (!file_.entry(tensor)) return {};
  SINTER_LET(expected, floats(file_, tensor));
  if (static_cast<int64_t>(expected.size()) != value.volume())
    return fail(fmt::format("tensor {} has {}, %{} has {}", tensor,
                            counted(expected.size(), "element"), name, value.volume()),
                file_.path());
  HostTensor rounded{DType::f32, value.dims,
                     std::vector<std::byte>(expected.size() * sizeof(float))};
  double largest = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    rounded.data<float>()[i] = static_cast<float>(expected[i]);
    largest = std::max(largest, std::abs(expected[i]));
  }
  SINTER_LET(apart, distance(value, rounded));
  ValueCheck check{fmt::format("{} (%{})", tensor, name), apart.max_abs, apart.max_ulp,
                   kAllowedShare * largest, false};
  check.passed = check.max_abs <= check.allowed;
  report.reference.push_back(std::move(check));
  return {};
}

Status ReferenceFile::check_loss(const HostTensor& logits, DTypeReport& report) const {
  if (!file_.entry("nll_mean")) return {};
  SINTER_LET(expected, floats(file_, "nll_mean"));
  if (expected.size() != 1)
    return fail(
        fmt::format("tensor nll_mean has {}, expected 1", counted(expected.size(), "element")),
        file_.path());
  const std::vector<double> values = to_doubles(logits);
  const auto width = static_cast<size_t>(logits.dims.back());
  double sum = 0;
  size_t row = 0, count = 0;
  for (const auto& sequence : sequences_)
    for (size_t t = 0; t < sequence.size(); ++t, ++row) {
      if (t + 1 == sequence.size()) continue;
      const double* logit = values.data() + row * width;
      const double largest = *std::max_element(logit, logit + width);
      double total = 0;
      for (size_t i = 0; i < width; ++i) total += std::exp(logit[i] - largest);
      sum += std::log(total) + largest - logit[sequence[t + 1]];
      ++count;
    }
  const double mean = sum / static_cast<double>(count);
  ValueCheck check{"nll_mean", std::abs(mean - expected[0]), 0,
                   kAllowedShare * std::abs(expected[0]), false};
  check.passed = check.max_abs <= check.allowed;
  report.reference.push_back(std::move(check));
  return {};
}

Status ReferenceFile::check(const ModelSpec& spec, llvm::ArrayRef<RunResult> calls,
                            DTypeReport& report) const {
  if (report.dtype != DType::f32) return {};
  int64_t layers = 0;
  while (file_.entry(fmt::format("hidden_{}", layers + 1))) ++layers;
  const HostTensor result = joined_outputs(calls);
  const auto kept = [&](const std::string& name) -> std::optional<HostTensor> {
    std::vector<const HostTensor*> parts;
    for (const RunResult& call : calls)
      for (const auto& [value, tensor] : call.kept)
        if (value == name) parts.push_back(&tensor);
    return parts.size() == calls.size() ? std::optional(joined_rows(parts)) : std::nullopt;
  };
  for (int64_t i = 0; i <= layers; ++i) {
    const std::string tensor = fmt::format("hidden_{}", i), name = hidden_state_name(spec, i);
    const auto value = name == "last_hidden_state" ? std::optional(result) : kept(name);
    if (!value)
      return fail(fmt::format("no stored value answers to {} (looked for %{})", tensor, name),
                  file_.path());
    SINTER_TRY(check_values(*value, tensor, name, report));
  }
  const std::string name = spec.encoder ? "last_hidden_state" : "logits";
  SINTER_TRY(check_values(result, name, name, report));
  return spec.encoder ? Status() : check_loss(result, report);
}

std::optional<bool> ReferenceFile::tokens_match(llvm::ArrayRef<int32_t> tokens) const {
  const size_t compared = std::min(tokens.size(), greedy_.size());
  if (compared == 0) return std::nullopt;
  return std::equal(greedy_.begin(), greedy_.begin() + static_cast<ptrdiff_t>(compared),
                    tokens.begin());
}

}  // namespace sinter
