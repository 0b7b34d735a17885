#include "driver/profile/records.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "driver/text_table.h"
#include "runtime/statistics.h"

namespace sinter {
namespace {

constexpr double kNanosecond = 1e-9;

double duration_s(const KernelRecord& record) {
  return record.end_ns > record.start_ns
             ? kNanosecond * static_cast<double>(record.end_ns - record.start_ns)
             : 0;
}

uint64_t first_start(const ProfiledToken& token) { return token.kernels.front().record.start_ns; }

/// Gives every token the end of those before it, and every copy to the last token that began before
/// it. One to the host waits for its token, beside which the next one may have begun.
void relate(std::vector<ProfiledToken>& tokens, std::vector<CopyRecord> copies) {
  std::vector<uint64_t> starts, ends;  // ends: of all so far
  uint64_t end = 0;
  for (ProfiledToken& token : tokens) {
    token.before_ns = end;
    for (const ProfiledKernel& kernel : token.kernels) end = std::max(end, kernel.record.end_ns);
    starts.push_back(first_start(token));
    ends.push_back(end);
  }
  for (CopyRecord& copy : copies) {
    const auto& before = copy.kind == CopyRecord::Kind::device_to_host ? ends : starts;
    const auto after = std::upper_bound(before.begin(), before.end(), copy.start_ns);
    if (after != before.begin()) tokens[after - before.begin() - 1].copies.push_back(copy);
  }
}

}  // namespace

Result<std::vector<ProfiledToken>> tokens_by_tag(DeviceRecords records, size_t steps,
                                                 size_t count) {
  std::vector<ProfiledToken> tokens(count);
  for (KernelRecord& kernel : records.kernels) {
    if (!kernel.tag || steps == 0 || *kernel.tag / steps >= count) continue;
    const uint64_t tag = *kernel.tag;
    tokens[tag / steps].kernels.push_back({tag % steps, std::move(kernel)});
  }
  for (size_t i = 0; i < count; ++i)
    if (tokens[i].kernels.empty())
      return fail(fmt::format("CUPTI recorded no kernels of call {} of {}, among {} kernels", i,
                              count, records.kernels.size()),
                  {}, "see that the user may profile", ExitCode::device);
  relate(tokens, std::move(records.copies));
  return tokens;
}

Result<std::vector<ProfiledToken>> tokens_in_order(DeviceRecords records, size_t count) {
  const size_t all = records.kernels.size();
  if (all == 0 || count == 0 || all % count != 0)
    return fail(fmt::format("CUPTI recorded {}, which do not divide into {}",
                            counted(all, "kernel"), counted(count, "token")),
                {}, "see that the user may profile", ExitCode::device);
  std::vector<ProfiledToken> tokens(count);
  for (size_t i = 0; i < all; ++i)
    tokens[i / (all / count)].kernels.push_back(
        {ProfiledKernel::kNoStep, std::move(records.kernels[i])});
  relate(tokens, std::move(records.copies));
  return tokens;
}

bool take_steps(const ProfiledToken& reference, ProfiledToken& token) {
  const auto same = [](const ProfiledKernel& a, const ProfiledKernel& b) {
    return a.record.name == b.record.name;
  };
  if (!std::equal(reference.kernels.begin(), reference.kernels.end(), token.kernels.begin(),
                  token.kernels.end(), same))
    return false;
  for (size_t i = 0; i < token.kernels.size(); ++i)
    token.kernels[i].step = reference.kernels[i].step;
  return true;
}

std::vector<double> added_seconds(const ProfiledToken& token) {
  std::vector<double> added;
  uint64_t end = token.before_ns;  // of all so far
  for (const ProfiledKernel& kernel : token.kernels) {
    const uint64_t from = std::max(kernel.record.start_ns, end);
    end = std::max(end, kernel.record.end_ns);
    added.push_back(end > from ? kNanosecond * static_cast<double>(end - from) : 0);
  }
  return added;
}

TokenTimes token_times(const std::vector<ProfiledToken>& tokens) {
  std::vector<double> periods, kernels, overlaps, gaps, pauses;
  for (const ProfiledToken& token : tokens) {
    uint64_t end = std::max(first_start(token), token.before_ns);
    double sum = 0, gap = 0;
    for (const ProfiledKernel& kernel : token.kernels) {
      sum += duration_s(kernel.record);
      if (kernel.record.start_ns > end)
        gap += kNanosecond * static_cast<double>(kernel.record.start_ns - end);
      end = std::max(end, kernel.record.end_ns);
    }
    kernels.push_back(sum);
    const std::vector<double> added = added_seconds(token);
    overlaps.push_back(sum - std::accumulate(added.begin(), added.end(), 0.0));
    gaps.push_back(gap);
    // The first of all has no token before it; alone it lasts as long as its kernels.
    if (token.before_ns == 0 && tokens.size() > 1) continue;
    const uint64_t start = first_start(token),
                   begin = token.before_ns > 0 ? token.before_ns : start;
    periods.push_back(kNanosecond * static_cast<double>(end - begin));
    pauses.push_back(start > begin ? kNanosecond * static_cast<double>(start - begin) : 0);
  }
  return {mean(periods), median(kernels), median(overlaps), median(gaps), mean(pauses)};
}

std::vector<TokenCopies> token_copies(const std::vector<ProfiledToken>& tokens) {
  std::map<std::pair<CopyRecord::Kind, uint64_t>, size_t> counts;
  for (const ProfiledToken& token : tokens)
    for (const CopyRecord& copy : token.copies) ++counts[{copy.kind, copy.bytes}];
  std::vector<TokenCopies> copies;
  for (const auto& [key, count] : counts)
    copies.push_back(
        {key.first, key.second, static_cast<double>(count) / static_cast<double>(tokens.size())});
  return copies;
}

}  // namespace sinter
