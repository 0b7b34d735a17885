// The registry of callers' ops, and what a record must be.
#include "ir/custom_op.h"

#include <llvm/ADT/STLExtras.h>

#include <cmath>
#include <map>
#include <mutex>
#include <tuple>

#include "ir/custom_signature.h"
#include "ir/graph.h"
#include "ir/never_destroyed.h"

namespace sinter {
namespace {

constexpr size_t kMaxCustomName = 64, kMaxCustomSource = size_t{1} << 20;
constexpr auto kMaxRank = static_cast<int64_t>(kMaxCustomRank);
constexpr int64_t kMaxCustomThreads = 1024;
constexpr int64_t kMaxCustomShared = 227 * 1024;  // of any device

struct RegisteredOp {
  CustomOp op;
  CustomSignature signature;
};

class CustomRegistry {
 public:
  /// The record under the name of `candidate`, which is kept if there is none.
  const RegisteredOp& keep(RegisteredOp candidate) {
    const std::lock_guard lock(mutex_);
    const std::string name = candidate.op.name;
    return ops_.try_emplace(name, std::move(candidate)).first->second;
  }
  const RegisteredOp* find(std::string_view name) {
    const std::lock_guard lock(mutex_);
    const auto at = ops_.find(name);
    return at == ops_.end() ? nullptr : &at->second;
  }
  std::vector<std::string> names() {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> names;
    for (const auto& [name, op] : ops_) names.push_back(name);
    return names;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, RegisteredOp, std::less<>> ops_;  // whose elements stay where they are
};

CustomRegistry& registry() {
  static auto& registry = never_destroyed([] { return CustomRegistry(); });
  return registry;
}

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// "acme::rms_norm".
bool is_function_name(std::string_view name) {
  for (;;) {
    const size_t end = std::min(name.find("::"), name.size());
    const std::string_view part = name.substr(0, end);
    if (part.empty() || (part[0] >= '0' && part[0] <= '9') ||
        !llvm::all_of(part, is_name_character))
      return false;
    if (end == name.size()) return true;
    name.remove_prefix(end + 2);
  }
}

Status check_range(std::string_view field, int64_t value, int64_t low, int64_t high,
                   int64_t multiple = 1) {
  if (value >= low && value <= high && value % multiple == 0) return {};
  return fail(fmt::format("{} is {}, must be {} to {}{}", field, value, low, high,
                          multiple == 1 ? "" : fmt::format(", a multiple of {}", multiple)));
}

Status check_fields(const CustomOp& op, size_t operands) {
  SINTER_TRY(check_range("threads", op.threads, 32, kMaxCustomThreads, 32));
  SINTER_TRY(check_range("row_axes", op.row_axes, -kMaxRank, kMaxRank));
  SINTER_TRY(check_range("shared_bytes", op.shared_bytes, 0, kMaxCustomShared));
  SINTER_TRY(
      check_range("number_count", op.number_count, 0, static_cast<int64_t>(kMaxCustomNumbers)));
  if (op.source.size() > kMaxCustomSource)
    return fail(fmt::format("source has {} bytes, at most {}", op.source.size(), kMaxCustomSource));
  if (escape_controls(op.source) != op.source)
    return fail("source has characters that are no text in UTF-8, or control characters");
  if (!is_function_name(op.function))
    return fail(
        fmt::format("function is \"{}\", no name of a C++ function", printable(op.function)));
  const std::string_view last =
      std::string_view(op.function).substr(op.function.find_last_of(':') + 1);
  if (op.source.find(last) == std::string::npos)
    return fail(fmt::format("source does not have the function {}", last));
  if (op.open_operands.size() > operands)
    return fail(fmt::format("open_operands has {} elements, the signature {} operands",
                            op.open_operands.size(), operands));
  if (!std::isfinite(op.tolerance) || op.tolerance < 0)
    return fail(fmt::format("tolerance is {}, must be a number >= 0", op.tolerance));
  if (op.exact && op.tolerance != 0)
    return fail(fmt::format("tolerance is {} and the op is exact", op.tolerance), {},
                "leave the tolerance of an exact op at 0");
  if (!op.evaluate) return fail("evaluate is missing", {}, "give the value on the host");
  return {};
}

auto all_fields_but_evaluate(const CustomOp& op) {
  return std::tie(op.name, op.signature, op.source, op.function, op.threads, op.row_axes,
                  op.shared_bytes, op.open_operands, op.open_result, op.exact, op.tolerance,
                  op.number_count);
}

Status register_op(CustomOp op) {
  SINTER_LET(signature, CustomSignature::parse(op.signature));
  SINTER_TRY(check_fields(op, signature.operand_count()));
  const RegisteredOp& kept = registry().keep({op, std::move(signature)});
  if (all_fields_but_evaluate(kept.op) != all_fields_but_evaluate(op))
    return fail("a different op is registered under the name", {},
                "give one of them another name; registered ops cannot be changed");
  return {};
}

}  // namespace

Status register_custom_op(CustomOp op) {
  const std::string name = op.name;
  const bool named = !name.empty() && name.size() <= kMaxCustomName &&
                     llvm::all_of(name, [](char c) { return is_name_character(c) || c == '.'; });
  if (!named)
    return fail(fmt::format("\"{}\" is no name of a custom op", printable(name)), {},
                fmt::format("use letters, digits, '_' and '.', at most {}", kMaxCustomName));
  Status status = register_op(std::move(op));
  if (status) return {};
  Error error = std::move(status.error());
  error.where = fmt::format("custom op {}{}{}", name, error.where.empty() ? "" : ", ", error.where);
  return tl::make_unexpected(std::move(error));
}

const CustomOp* find_custom_op(std::string_view name) {
  const RegisteredOp* found = registry().find(name);
  return found ? &found->op : nullptr;
}

const CustomOp& custom_op_of(const Op& op) {
  const auto& name = op.attrs.get<std::string>(AttrName::op);
  const CustomOp* record = find_custom_op(name);
  SINTER_CHECK(record, "{} is verified and no op is registered under {}", op.name, name);
  return *record;
}

size_t custom_row_axes(const CustomOp& op, size_t rank) {
  const int64_t axes = op.row_axes >= 0 ? op.row_axes : static_cast<int64_t>(rank) + op.row_axes;
  SINTER_CHECK(axes >= 0 && axes <= static_cast<int64_t>(rank), "{} of {} axes", axes, rank);
  return static_cast<size_t>(axes);
}

const CustomSignature* find_custom_signature(std::string_view name) {
  const RegisteredOp* found = registry().find(name);
  return found ? &found->signature : nullptr;
}

std::vector<std::string> custom_op_names() { return registry().names(); }

}  // namespace sinter
