#include "driver/explain/measured.h"

#include <llvm/ADT/StringMap.h>

#include "driver/json_lists.h"

namespace sinter {
namespace {

std::string key_of(const std::vector<std::string>& values) {
  return fmt::format("{}", fmt::join(values, " "));
}

Result<MeasuredStep> step_of(const JsonView& row) {
  MeasuredStep step;
  SINTER_LET(seconds, row["seconds"].number(0, kLongestTime));
  SINTER_LET(steps, row["steps"].integer(0));
  step.seconds = seconds / static_cast<double>(std::max<int64_t>(steps, 1));
  if (const JsonView launch = row["first_launch"]; launch.present()) {
    SINTER_LET(grid, json_counts(launch["grid"]));
    SINTER_LET(block, json_counts(launch["block"]));
    SINTER_LET(registers, launch["registers"].integer(0));
    SINTER_LET(shared, launch["shared_bytes"].integer(0));
    step.launch = {std::move(grid), std::move(block), registers, shared};
  }
  return step;
}

}  // namespace

const MeasuredStep* MeasuredTimes::step(const std::string& entry,
                                        const std::vector<std::string>& values) const {
  const auto at = steps_.find({entry, key_of(values)});
  return at == steps_.end() ? nullptr : &at->second;
}

std::optional<double> MeasuredTimes::call(const std::string& entry) const {
  const auto at = calls_.find(entry);
  return at == calls_.end() ? std::nullopt : std::optional(at->second);
}

Status MeasuredTimes::check(const Program& program, const std::string& file) const {
  std::map<std::pair<std::string, std::string>, bool> known;
  bool any = false;
  for (const EntryPlan& entry : program.entries) {
    for (const Step& step : entry.steps) known[{entry.name, key_of(step.values)}] = true;
    any |= calls_.contains(entry.name);
  }
  for (const auto& [key, step] : steps_) {
    if (!program.find_entry(key.first)) continue;
    any = true;
    if (!known.contains(key))
      return fail(fmt::format("a kernel of {} computes {}, and none of this plan does",
                              printable(key.first), printable(key.second, 200)),
                  file, "measure the same model with the same options");
  }
  if (!any)
    return fail("it has no time of an entry of this plan", file,
                "measure the same model with the same options");
  return {};
}

Result<MeasuredTimes> read_measured(const std::string& path) {
  SINTER_LET(document, read_json(path, kLargestReport));
  MeasuredTimes times;
  const JsonView root = document.view();
  // A benchmark has a profile in it, or the times of whole calls alone.
  const JsonView profile = root["decode_kernels"].present() ? root["decode_kernels"] : root;
  if (profile["rows"].present() && profile["steps"].present()) {
    SINTER_LET(device, profile["device"].string_or(""));
    times.device_ = std::move(device);
    llvm::StringMap<MeasuredStep> by_kernel;
    SINTER_LET(rows, profile["rows"].array());
    for (size_t i = 0; i < rows->size(); ++i) {
      const JsonView row = profile["rows"][i];
      SINTER_LET(kernel, row["kernel"].string());
      SINTER_LET(step, step_of(row));
      by_kernel[kernel] = std::move(step);
    }
    SINTER_LET(steps, profile["steps"].array());
    for (size_t i = 0; i < steps->size(); ++i) {
      const JsonView step = profile["steps"][i];
      SINTER_LET(entry, step["entry"].string());
      SINTER_LET(kernel, step["kernel"].string());
      SINTER_LET(values, json_strings(step["computes"]));
      const auto row = by_kernel.find(kernel);  // absent: it launched nothing
      times.steps_[{entry, key_of(values)}] = row == by_kernel.end() ? MeasuredStep{} : row->second;
    }
  }
  if (root["cases"].present()) {
    SINTER_LET(device, root["machine"]["device"].string_or(times.device_));
    times.device_ = std::move(device);
    SINTER_LET(cases, root["cases"].array());
    for (size_t i = 0; i < cases->size(); ++i) {
      SINTER_LET(name, root["cases"][i]["name"].string());
      SINTER_LET(seconds, root["cases"][i]["fused"]["median_s"].number(0, kLongestTime));
      times.calls_.try_emplace(name, seconds);
    }
  }
  if (times.empty())
    return fail("it has neither the kernels of a profile nor the cases of a benchmark", path,
                "give what `sinter profile --json` or `sinter bench --json` printed");
  return times;
}

}  // namespace sinter
