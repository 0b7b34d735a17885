// Texts of an encoder: each alone, then several in one call in every order.
#include <algorithm>
#include <numeric>

#include "driver/embed/encode.h"
#include "driver/verify/invariant_parts.h"

namespace sinter {
namespace {

using Lengths = std::vector<int64_t>;

constexpr int64_t kEncoded[] = {5, 70, 130};  // tokens of the first call's texts
constexpr int kCallsOfTexts = 3;
constexpr int64_t kOrders = 6, kShortText = 12;

/// Rows of the longest call with these texts, in any order.
int64_t most_rows(Lengths lengths) {
  std::sort(lengths.begin(), lengths.end());
  int64_t most = 0;
  do most = std::max(most, packed_rows(lengths, true));
  while (std::next_permutation(lengths.begin(), lengths.end()));
  return most;
}

/// Each order of the texts in one call, beside each text alone.
Status check_orders(InvarianceCheck& check, const Lengths& lengths) {
  std::vector<std::vector<int32_t>> texts;
  std::vector<HostTensor> alone;
  for (const int64_t length : lengths) {
    texts.push_back(check.text(length));
    SINTER_LET(result, encode(check.spec, check.executable, {texts.back()}, check.poisoned()));
    SINTER_TRY(check.check_finite(result.outputs[0]));
    alone.push_back(std::move(result.outputs[0]));
  }
  std::vector<size_t> order(texts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  do {
    std::vector<std::vector<int32_t>> packed;
    Lengths sizes;
    for (const size_t text : order) {
      packed.push_back(texts[text]);
      sizes.push_back(lengths[text]);
    }
    if (packed_rows(sizes, check.program().invariant) > check.spec.max_positions) continue;
    SINTER_LET(result, encode(check.spec, check.executable, packed, check.poisoned()));
    int64_t row = 0;
    for (size_t i = 0; i < order.size(); ++i) {
      InvariantWay& way = check.way(i == 0                 ? "packed first"
                                    : i + 1 < order.size() ? "packed in the middle"
                                                           : "packed last");
      ++way.calls;
      SINTER_TRY(compare_rows(result.outputs[0], row, alone[order[i]], 0, sizes[i],
                              fmt::format("of a text of {}", sizes[i]), way));
      row += sizes[i];
    }
  } while (std::next_permutation(order.begin(), order.end()));
  return {};
}

}  // namespace

Status check_encoder_ways(InvarianceCheck& check) {
  // The longest text is halved until all fit a call in every order, and the work is affordable.
  Lengths lengths(std::begin(kEncoded), std::end(kEncoded));
  const auto longest = [&] { return std::max_element(lengths.begin(), lengths.end()); };
  while (most_rows(lengths) > check.spec.max_positions ||
         (*longest() > kShortText && (kOrders + 1) * most_rows(lengths) > check.work)) {
    if (*longest() == 1)
      return fail(
          fmt::format("{} positions hold no {} texts", check.spec.max_positions, lengths.size()),
          check.program().name, "nothing can be packed", ExitCode::usage);
    *longest() /= 2;
  }
  check.report.texts = lengths;
  for (int call = 0; call < kCallsOfTexts; ++call) {
    if (call > 0) {
      if ((call + 1) * (kOrders + 1) * most_rows(lengths) > check.work) break;
      for (int64_t& length : lengths) length = check.draw(1, length);
    }
    SINTER_TRY(check_orders(check, lengths));
  }
  return {};
}

}  // namespace sinter
