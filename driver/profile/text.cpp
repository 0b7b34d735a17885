#include <algorithm>

#include "driver/profile/report.h"
#include "driver/text_table.h"

namespace sinter {
namespace {

// Characters of the last column: enough for the kernels of one block.
constexpr size_t kValuesWidth = 60;

std::string milliseconds(double seconds) { return fmt::format("{:.3f} ms", seconds * 1e3); }
std::string percent(double share) { return fmt::format("{:.1f} %", share * 100); }

/// "a, b, c, ..." of at most kValuesWidth characters.
std::string listed(const std::vector<std::string>& values) {
  std::string text;
  for (size_t i = 0; i < values.size(); ++i) {
    const std::string next = (i > 0 ? " " : "") + printable(values[i]);
    if (text.size() + next.size() > kValuesWidth && i > 0)
      return text + fmt::format(" +{}", values.size() - i);
    text += next;
  }
  return text;
}

std::string sizes_text(const Profile& profile) {
  std::string text;
  for (const auto& [name, value] : profile.sizes)
    text += fmt::format(", {} {}", printable(name), value);
  return text;
}

/// "token" of a decode step, else "call".
std::string_view unit(const Profile& profile) {
  return profile.phase == "decode" ? "token" : "call";
}

std::string copies_text(const Profile& profile, const ProfileRun& run) {
  std::string crossing, inside;
  for (const TokenCopies& copies : run.copies)
    (crosses_bus(copies.kind) ? crossing : inside) += fmt::format(
        "{}{:g} × {} {}", (crosses_bus(copies.kind) ? crossing : inside).empty() ? "" : ", ",
        copies.count, with_unit(static_cast<double>(copies.bytes), "B"), to_string(copies.kind));
  return fmt::format("over the bus per {}: {}\ncopies and fills inside the device: {}\n",
                     unit(profile), crossing.empty() ? "nothing" : crossing,
                     inside.empty() ? "none" : inside);
}

double launches(const ProfileRun& run) {
  return run.tokens.empty() ? 0 : static_cast<double>(run.tokens.front().kernels.size());
}

std::string times_text(const Profile& profile) {
  TextTable table("lrrrrrr");
  table.add({"per " + std::string(unit(profile)), "time", "kernels", "overlapped", "gaps", "pause",
             "launches"});
  const auto add = [&](std::string name, const ProfileRun& run) {
    table.add({std::move(name), milliseconds(run.times.period), milliseconds(run.times.kernels),
               milliseconds(run.times.overlapped), milliseconds(run.times.gaps),
               milliseconds(run.times.pause), fmt::format("{:g}", launches(run))});
  };
  table.add({"recorded graph", milliseconds(profile.untraced_s)});
  add("recorded graph, traced", profile.recorded);
  add("step by step, traced", profile.stepped);
  return table.str();
}

std::string ceilings_text(const ProfileCeilings& ceilings) {
  return fmt::format("ceilings of this run: read {}, copy {} (by {}), products {} (by {})\n",
                     with_unit(ceilings.read.per_s, "B/s"), with_unit(ceilings.copy.per_s, "B/s"),
                     ceilings.copy.by, with_unit(ceilings.gemm.per_s, "FLOP/s"), ceilings.gemm.by);
}

std::string whole_text(const Profile& profile) {
  const double bytes = profile.bytes();
  const double rate = profile.untraced_s > 0 ? bytes / profile.untraced_s : 0;
  const double ceiling = profile.ceilings.read.per_s;
  return fmt::format("a {} moves {}: {} over its time, {} of the read's ceiling\n", unit(profile),
                     with_unit(bytes, "B"), with_unit(rate, "B/s"),
                     percent(ceiling > 0 ? rate / ceiling : 0));
}

std::string rows_text(const Profile& profile) {
  TextTable table("lrrrrrrll");
  table.add(
      {"kernel", "launches", "µs", "share", "bytes", "rate", "of ceiling", "bound by", "computes"});
  for (const ProfileRow& row : profile.rows)
    table.add({printable(row.title), fmt::format("{:g}", row.launches),
               fmt::format("{:.2f}", row.seconds * 1e6), percent(row.share),
               with_unit(row.cost.bytes(), "B"), with_unit(row.bytes_per_s(), "B/s"),
               percent(row.of_ceiling) + (row.against_copy ? " c" : " r"),
               std::string(to_string(row.bound)), listed(row.values)});
  return table.str();
}

std::string classes_text(const Profile& profile) {
  TextTable table("lrrr");
  table.add({"class", "launches", "µs", "share"});
  for (const ProfileClass& one : profile_classes(profile.rows))
    table.add({std::string(class_name(one.step_class)), fmt::format("{:g}", one.launches),
               fmt::format("{:.2f}", one.seconds * 1e6), percent(one.share)});
  return table.str();
}

/// Where the token's time is that no row has.
std::string rest_text(const Profile& profile) {
  const double whole = profile.untraced_s;
  return fmt::format(
      "A {} takes {}: kernels run for {} ({} of their time overlapped), idle for {}, {}.\n",
      unit(profile), milliseconds(whole), milliseconds(profile.busy_s()),
      milliseconds(profile.recorded.times.overlapped), milliseconds(profile.idle_s()),
      percent(whole > 0 ? profile.idle_s() / whole : 0));
}

}  // namespace

std::string profile_text(const Profile& profile) {
  std::string text = fmt::format(
      "{}: {}{} on {}, {}{}, {} {}s\n", printable(profile.model), printable(profile.phase),
      sizes_text(profile), profile.device, profile.dtype.empty() ? "" : profile.dtype + ", ",
      profile.fused ? "fused" : "a kernel for every op", profile.count, unit(profile));
  if (profile.experts) text += "routing " + step_experts_text(*profile.experts) + "\n";
  text += "\n" + times_text(profile) + "\n" + copies_text(profile, profile.recorded) +
          ceilings_text(profile.ceilings) + whole_text(profile) + "\n";
  text += rows_text(profile) + "\n" + classes_text(profile);
  text += fmt::format(
      "\nPer {}, from {}. Of ceiling: r of the read's, c of the copy's. Bound by what would\n"
      "take at least {:g} % of the time at its own ceiling, else by latency. A kernel's time "
      "counts\n"
      "from the end of those that began before it.\n",
      unit(profile),
      profile.matched ? "the recorded graph"
                      : "the steps launched one by one: the graph ran other kernels",
      kBoundShare * 100);
  // Every run reads the same inputs.
  if (std::any_of(profile.rows.begin(), profile.rows.end(),
                  [](const ProfileRow& row) { return row.of_ceiling > 1; }))
    text +=
        "Shares above 100 % are of bytes that the second-level cache holds, or that were read "
        "early.\n";
  return text + rest_text(profile);
}

}  // namespace sinter
