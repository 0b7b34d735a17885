#include <algorithm>
#include <nlohmann/json.hpp>

#include "driver/profile/report.h"

namespace sinter {
namespace {

using Json = nlohmann::ordered_json;

/// Text of files may hold any bytes.
std::string dump(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace) + '\n';
}

Json ceiling_json(const Ceiling& ceiling) {
  return {{"per_s", ceiling.per_s},
          {"amount", ceiling.amount},
          {"by", ceiling.by},
          {"seconds", ceiling.seconds}};
}

Json run_json(const ProfileRun& run) {
  Json copies = Json::array();
  for (const TokenCopies& copy : run.copies)
    copies.push_back({{"kind", to_string(copy.kind)},
                      {"bytes", copy.bytes},
                      {"count", copy.count},
                      {"crosses_bus", crosses_bus(copy.kind)}});
  return {{"time_s", run.times.period},
          {"kernels_s", run.times.kernels},
          {"overlapped_s", run.times.overlapped},
          {"gaps_s", run.times.gaps},
          {"pause_s", run.times.pause},
          {"launches", run.tokens.empty() ? 0 : run.tokens.front().kernels.size()},
          {"copies", copies}};
}

Json launch_json(const KernelRecord& record) {
  return {{"grid", record.grid},
          {"block", record.block},
          {"registers", record.registers},
          {"shared_bytes", record.shared_bytes}};
}

Json row_json(const ProfileRow& row) {
  return {{"kernel", row.title},
          {"functions", row.functions},
          {"computes", row.values},
          {"steps", row.steps},
          {"launches", row.launches},
          {"seconds", row.seconds},
          {"share", row.share},
          {"read_bytes", row.cost.read_bytes},
          {"written_bytes", row.cost.written_bytes},
          {"flops", row.cost.flops},
          {"bytes_per_s", row.bytes_per_s()},
          {"flops_per_s", row.flops_per_s()},
          {"of_ceiling", row.of_ceiling},
          {"ceiling", row.against_copy ? "copy" : "read"},
          {"bound_by", to_string(row.bound)},
          {"class", class_name(row.step_class)},
          {"first_launch", launch_json(row.first)}};
}

Json class_json(const ProfileClass& one) {
  return {{"class", class_name(one.step_class)},
          {"launches", one.launches},
          {"seconds", one.seconds},
          {"share", one.share}};
}

Json step_json(const ProfiledStep& step) {
  return {{"entry", step.entry},
          {"kernel", step.title},
          {"class", to_string(step.step_class)},
          {"computes", step.values},
          {"bytes", step.cost.bytes()},
          {"flops", step.cost.flops}};
}

// Trace event format: times in microseconds, from the first event of the run on.
class TraceEvents {
 public:
  void add_run(int process, std::string_view name, const ProfileRun& run,
               const std::vector<ProfiledStep>& steps) {
    begin_ = UINT64_MAX;
    for (const ProfiledToken& token : run.tokens) {
      for (const ProfiledKernel& kernel : token.kernels)
        begin_ = std::min(begin_, kernel.record.start_ns);
      for (const CopyRecord& copy : token.copies) begin_ = std::min(begin_, copy.start_ns);
    }
    process_ = process;
    events_.push_back(
        {{"name", "process_name"}, {"ph", "M"}, {"pid", process}, {"args", {{"name", name}}}});
    for (size_t i = 0; i < run.tokens.size(); ++i) {
      for (const ProfiledKernel& kernel : run.tokens[i].kernels) add_kernel(i, kernel, steps);
      for (const CopyRecord& copy : run.tokens[i].copies)
        add(std::string(to_string(copy.kind)), "copy", copy, {{"token", i}, {"bytes", copy.bytes}});
    }
  }
  Json take() { return std::move(events_); }

 private:
  void add_kernel(size_t token, const ProfiledKernel& kernel,
                  const std::vector<ProfiledStep>& steps) {
    Json arguments = launch_json(kernel.record);
    arguments["token"] = token;
    arguments["function"] = kernel.record.name;
    std::string name = kernel.record.name;
    if (kernel.step < steps.size()) {
      const ProfiledStep& step = steps[kernel.step];
      arguments["entry"] = step.entry;
      arguments["kernel"] = step.title;
      arguments["bytes"] = step.cost.bytes();
      name = fmt::format("{}", fmt::join(step.values, " "));
      if (name.empty()) name = step.title;
    }
    add(std::move(name), "kernel", kernel.record, std::move(arguments));
  }

  template <typename Record>
  void add(std::string name, std::string_view category, const Record& record, Json arguments) {
    const uint64_t length = record.end_ns > record.start_ns ? record.end_ns - record.start_ns : 0;
    events_.push_back({{"name", std::move(name)},
                       {"cat", category},
                       {"ph", "X"},
                       {"ts", static_cast<double>(record.start_ns - begin_) * 1e-3},
                       {"dur", static_cast<double>(length) * 1e-3},
                       {"pid", process_},
                       {"tid", record.stream},
                       {"args", std::move(arguments)}});
  }

  Json events_ = Json::array();
  int process_ = 0;
  uint64_t begin_ = 0;
};

}  // namespace

Json step_experts_json(const StepExperts& step) {
  return {{"routing", to_string(step.routing)},
          {"tokens", step.tokens},
          {"count", step.count},
          {"read", step.read}};
}

std::string profile_json(const Profile& profile) {
  Json sizes = Json::object(), rows = Json::array(), classes = Json::array(), steps = Json::array();
  for (const auto& [name, value] : profile.sizes) sizes[name] = value;
  for (const ProfileRow& row : profile.rows) rows.push_back(row_json(row));
  for (const ProfileClass& one : profile_classes(profile.rows)) classes.push_back(class_json(one));
  for (const ProfiledStep& step : profile.steps) steps.push_back(step_json(step));
  Json json = {{"model", profile.model},
               {"phase", profile.phase},
               {"dtype", profile.dtype},
               {"device", profile.device},
               {"driver", profile.driver},
               {"fused", profile.fused},
               {"sizes", sizes},
               {"count", profile.count},
               {"ceilings",
                {{"read", ceiling_json(profile.ceilings.read)},
                 {"copy", ceiling_json(profile.ceilings.copy)},
                 {"gemm", ceiling_json(profile.ceilings.gemm)}}},
               {"untraced_s", profile.untraced_s},
               {"busy_s", profile.busy_s()},
               {"idle_s", profile.idle_s()},
               {"bytes", profile.bytes()},
               {"recorded", run_json(profile.recorded)},
               {"stepped", run_json(profile.stepped)},
               {"rows_from", profile.matched ? "recorded" : "stepped"},
               {"rows", rows},
               {"classes", classes},
               {"steps", steps}};
  if (profile.experts) json["experts"] = step_experts_json(*profile.experts);
  return dump(json, 2);
}

std::string profile_trace(const Profile& profile) {
  TraceEvents events;
  events.add_run(1, "recorded graph", profile.recorded, profile.steps);
  events.add_run(2, "step by step", profile.stepped, profile.steps);
  const Json json = {
      {"traceEvents", events.take()},
      {"displayTimeUnit", "ns"},
      {"otherData",
       {{"model", profile.model}, {"phase", profile.phase}, {"device", profile.device}}}};
  return dump(json, -1);
}

}  // namespace sinter
