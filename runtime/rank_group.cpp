#include "runtime/rank_group.h"

#include <algorithm>

#include "runtime/evaluate/host_view.h"

namespace sinter {
namespace {

constexpr int64_t kPiece = 1024;  // elements that are added at a time

void add_to(float& sum, float value) { sum += value; }
void add_to(int32_t& sum, int32_t value) {
  sum = static_cast<int32_t>(static_cast<uint32_t>(sum) + static_cast<uint32_t>(value));
}

template <typename T>
void add_ranks(llvm::ArrayRef<RankGroup::Value> values, std::byte* result) {
  const Storage storage = storage_of(values[0].dtype);
  const int64_t width = whole_bytes(storage);
  const int64_t count = static_cast<int64_t>(values[0].bytes) / width;
  std::vector<T> sums(kPiece), piece(kPiece);
  for (int64_t i = 0; i < count; i += kPiece) {
    const int64_t size = std::min(kPiece, count - i);
    load_run(storage, values[0].data + i * width, 1, size, sums.data());
    for (const RankGroup::Value& value : values.drop_front()) {
      load_run(storage, value.data + i * width, 1, size, piece.data());
      for (int64_t k = 0; k < size; ++k) add_to(sums[k], piece[k]);
    }
    store_run(sums.data(), size, storage, result + i * width);
  }
}

}  // namespace

Status RankGroup::all_reduce(size_t rank, const Value& own, std::byte* result) {
  {
    const std::lock_guard lock(mutex_);
    values_[rank] = own;
  }
  SINTER_TRY(meet(own.step));
  Status same = same_collective(rank);
  if (same) {
    if (own.dtype == DType::i32)
      add_ranks<int32_t>(values_, result);
    else
      add_ranks<float>(values_, result);
  }
  // The other ranks have read this rank's value.
  SINTER_TRY(meet(own.step));
  return same;
}

/// Waits until all ranks are here.
Status RankGroup::meet(const std::string& step) {
  std::unique_lock lock(mutex_);
  const uint64_t meeting = meetings_;
  if (++waiting_ == size()) {
    waiting_ = 0;
    ++meetings_;
    met_.notify_all();
    return {};
  }
  const auto gone = [&] { return std::find(left_.begin(), left_.end(), true); };
  met_.wait(lock, [&] { return meetings_ != meeting || gone() != left_.end(); });
  if (meetings_ != meeting) return {};
  --waiting_;
  return fail(fmt::format("rank {} has ended, this rank waits for it", gone() - left_.begin()),
              step, "all ranks must call the same entries with the same sizes");
}

Status RankGroup::same_collective(size_t rank) const {
  const Value& own = values_[rank];
  for (size_t other = 0; other < size(); ++other) {
    const Value& value = values_[other];
    if (value.step == own.step && value.dtype == own.dtype && value.bytes == own.bytes) continue;
    return fail(
        fmt::format("rank {} adds {} bytes of {}, rank {} {} bytes of {} at {}", rank, own.bytes,
                    to_string(own.dtype), other, value.bytes, to_string(value.dtype), value.step),
        own.step, "all ranks must call the same entries with the same sizes");
  }
  return {};
}

void RankGroup::leave(size_t rank, bool failed) {
  const std::lock_guard lock(mutex_);
  left_[rank] = true;
  if (failed && !first_failed_) first_failed_ = rank;
  met_.notify_all();
}

}  // namespace sinter
