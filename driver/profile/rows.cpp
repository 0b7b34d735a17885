#include "driver/profile/rows.h"

#include <algorithm>
#include <map>

#include "runtime/statistics.h"

namespace sinter {
namespace {

// From this share of written bytes on, a copy is a fairer measure of a kernel than a read.
constexpr double kCopyShare = 1.0 / 3;

constexpr std::string_view kOutside = "(outside the plan)";  // the title of kernels without a step

void add_once(std::vector<std::string>& list, const std::string& item) {
  if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(item);
}

/// "l12.res1" → "l*.res1"
std::string star_layer(const std::string& value) {
  if (value.empty() || value[0] != 'l') return value;
  const size_t digits = value.find_first_not_of("0123456789", 1);
  if (digits == 1 || digits == std::string::npos || value[digits] != '.') return value;
  return "l*" + value.substr(digits);
}

void judge(ProfileRow& row, const ProfileCeilings& ceilings) {
  if (row.seconds <= 0) return;
  row.against_copy =
      row.cost.written_bytes >= kCopyShare * row.cost.bytes() && row.cost.written_bytes > 0;
  const double memory = (row.against_copy ? ceilings.copy : ceilings.read).per_s;
  row.of_ceiling = memory > 0 ? row.bytes_per_s() / memory : 0;
  const double of_products = ceilings.gemm.per_s > 0 ? row.flops_per_s() / ceilings.gemm.per_s : 0;
  if (std::max(row.of_ceiling, of_products) < kBoundShare) return;
  row.bound = row.of_ceiling >= of_products ? Bound::memory : Bound::compute;
}

/// Rows by title, in the order of the first step.
class Rows {
 public:
  explicit Rows(const std::vector<ProfiledStep>& steps) {
    for (const ProfiledStep& step : steps) {
      ProfileRow& row = at(step.title);
      of_step_.push_back(index_[step.title]);
      ++row.steps;
      row.step_class = step.step_class;
      for (const std::string& value : shortened(step.values)) add_once(row.values, value);
      row.cost.read_bytes += step.cost.read_bytes;
      row.cost.written_bytes += step.cost.written_bytes;
      row.cost.flops += step.cost.flops;
    }
  }

  void add(const ProfiledToken& token) {
    std::map<size_t, double> seconds;
    const std::vector<double> added = added_seconds(token);
    for (size_t i = 0; i < token.kernels.size(); ++i) {
      const ProfiledKernel& kernel = token.kernels[i];
      const bool known = kernel.step < of_step_.size();
      if (!known) at(std::string(kOutside));
      const size_t index = known ? of_step_[kernel.step] : index_[std::string(kOutside)];
      ProfileRow& row = rows_[index];
      if (row.launches == 0) row.first = kernel.record;
      add_once(row.functions, kernel.record.name);
      ++row.launches;
      seconds[index] += added[i];
    }
    for (const auto& [index, sum] : seconds) samples_[index].push_back(sum);
  }

  std::vector<ProfileRow> take(size_t tokens, const ProfileCeilings& ceilings) {
    double all = 0;
    for (size_t i = 0; i < rows_.size(); ++i) {
      samples_[i].resize(tokens, 0);  // tokens in which it did not run
      rows_[i].seconds = median(samples_[i]);
      rows_[i].launches /= static_cast<double>(std::max<size_t>(tokens, 1));
      all += rows_[i].seconds;
    }
    std::erase_if(rows_, [](const ProfileRow& row) { return row.launches == 0; });
    for (ProfileRow& row : rows_) {
      row.share = all > 0 ? row.seconds / all : 0;
      judge(row, ceilings);
    }
    std::stable_sort(rows_.begin(), rows_.end(),
                     [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
    return std::move(rows_);
  }

 private:
  ProfileRow& at(const std::string& title) {
    const auto [it, is_new] = index_.try_emplace(title, rows_.size());
    if (is_new) {
      rows_.emplace_back().title = title;
      samples_.emplace_back();
    }
    return rows_[it->second];
  }

  std::map<std::string, size_t> index_;  // by title
  std::vector<size_t> of_step_;
  std::vector<ProfileRow> rows_;
  std::vector<std::vector<double>> samples_;  // seconds per token
};

}  // namespace

std::string_view to_string(Bound bound) {
  switch (bound) {
    case Bound::memory:
      return "memory";
    case Bound::compute:
      return "compute";
    case Bound::latency:
      break;
  }
  return "latency";
}

std::vector<ProfileRow> profile_rows(const std::vector<ProfiledStep>& steps,
                                     const std::vector<ProfiledToken>& tokens,
                                     const ProfileCeilings& ceilings) {
  Rows rows(steps);
  for (const ProfiledToken& token : tokens) rows.add(token);
  return rows.take(tokens.size(), ceilings);
}

std::string_view class_name(std::optional<StepClass> step_class) {
  return step_class ? to_string(*step_class) : "outside the plan";
}

std::vector<ProfileClass> profile_classes(const std::vector<ProfileRow>& rows) {
  std::vector<ProfileClass> classes;
  for (const ProfileRow& row : rows) {
    auto found = std::find_if(classes.begin(), classes.end(), [&](const ProfileClass& one) {
      return one.step_class == row.step_class;
    });
    if (found == classes.end()) found = classes.insert(found, {row.step_class});
    found->launches += row.launches;
    found->seconds += row.seconds;
    found->share += row.share;
  }
  std::stable_sort(classes.begin(), classes.end(),
                   [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  return classes;
}

std::vector<std::string> shortened(const std::vector<std::string>& values) {
  std::vector<std::string> names;
  for (const std::string& value : values) add_once(names, star_layer(value));
  return names;
}

}  // namespace sinter
