#include "runtime/evaluate/packed_row.h"

#include <algorithm>
#include <cstring>

#include "ir/integers.h"
#include "runtime/evaluate/host_view.h"

namespace sinter {
namespace {

/// Calls step(first round of the step, its rounds, its offset in the row).
template <typename Step>
void for_steps(const CodeLayout& layout, int64_t length, Step&& step) {
  const int64_t rounds = ceil_div(length, int64_t{kCodeRound});
  for (int64_t first = 0; first < rounds; first += layout.step_rounds())
    step(first, static_cast<int>(std::min<int64_t>(layout.step_rounds(), rounds - first)),
         layout.step_offset(first * kCodeRound, length));
}

/// Calls place(group, offsets in the row of its scale, zero and minimum).
template <typename Place>
void for_groups(const CodeLayout& layout, int64_t length, Place&& place) {
  if (layout.group == 0) {
    const int64_t tail = layout.step_offset(length, length);
    place(int64_t{0}, tail, tail + 4, tail + 8);
    return;
  }
  for_steps(layout, length, [&](int64_t first, int rounds, int64_t offset) {
    for (int r = 0; r < rounds; ++r)
      for (int k = 0; k < kCodeRound; k += layout.group) {
        const int64_t code = (first + r) * kCodeRound + k;
        if (code >= length) return;
        const int entry = layout.entry(k / kCodeChunk, r, rounds);
        place(code / layout.group, offset + layout.scales(rounds) + entry * layout.scale_bytes,
              offset + layout.zeros_at(rounds) + entry * 2,
              offset + layout.minima_at(rounds) + entry * layout.scale_bytes);
      }
  });
}

/// Calls chunk(its first code, the offset of its bytes in the row).
template <typename Chunk>
void for_chunks(const CodeLayout& layout, int64_t length, Chunk&& chunk) {
  for_steps(layout, length, [&](int64_t first, int rounds, int64_t offset) {
    for (int r = 0; r < rounds; ++r)
      for (int lane = 0; lane < kCodeLanes; ++lane) {
        const int64_t code = (first + r) * kCodeRound + lane * kCodeChunk;
        if (code >= length) return;
        chunk(code, offset + (lane * rounds + r) * layout.lane_bytes());
      }
  });
}

/// A copy of a size that the compiler knows.
template <size_t size>
void copy_bytes(std::byte* to, const std::byte* from) {
  std::memcpy(to, from, size);
}

}  // namespace

template <typename T>
void UnpackedRow<T>::read(const CodeFormat& format, int64_t length, const std::byte* row) {
  const CodeLayout layout = format.layout();
  const auto groups = static_cast<size_t>(code_groups(format, length));
  const Storage storage = storage_of(format.scale);
  codes.resize(static_cast<size_t>(length));
  scales.resize(groups);
  minima.resize(format.minima ? groups : 0);
  std::vector<float> zeros(groups, 0.0f);
  for_groups(layout, length, [&](int64_t group, int64_t scale, int64_t zero, int64_t minimum) {
    const auto at = static_cast<size_t>(group);
    load_run(storage, row + scale, 1, 1, &scales[at]);
    if (format.zeros) {
      int16_t value = 0;
      std::memcpy(&value, row + zero, sizeof(value));
      zeros[at] = value;
    }
    if (format.minima) load_run(storage, row + minimum, 1, 1, &minima[at]);
  });
  const int in_word = static_cast<int>(32 / format.bits());
  for_chunks(layout, length, [&](int64_t first, int64_t offset) {
    const int64_t count = std::min<int64_t>(kCodeChunk, length - first);
    for (int64_t k = 0; k < count; ++k) {
      uint32_t word = 0;
      std::memcpy(&word, row + offset + k / in_word * 4, sizeof(word));
      float value = code_value(format.code, word, static_cast<int>(k % in_word));
      if (format.zeros)
        value -= zeros[static_cast<size_t>(format.group == 0 ? 0 : (first + k) / format.group)];
      codes[static_cast<size_t>(first + k)] = value;
    }
  });
}
template struct UnpackedRow<float>;
template struct UnpackedRow<double>;

void pack_row(const CodeFormat& format, int64_t length, const int32_t* words,
              const std::byte* scales, const int32_t* zeros, const std::byte* minima,
              std::byte* row) {
  const CodeLayout layout = format.layout();
  std::fill_n(row, layout.row_bytes(length), std::byte{0});
  const int64_t bits = format.bits(), bytes = layout.scale_bytes;
  const auto* dense = reinterpret_cast<const std::byte*>(words);
  for_chunks(layout, length, [&](int64_t first, int64_t offset) {
    // A chunk has `bits` bytes. Codes behind the row's end are 0.
    const int64_t count = std::min<int64_t>(kCodeChunk, length - first);
    if (count == kCodeChunk && bits == 4) return copy_bytes<4>(row + offset, dense + first / 2);
    if (count == kCodeChunk && bits == 8) return copy_bytes<8>(row + offset, dense + first);
    std::memcpy(row + offset, dense + first * bits / 8,
                static_cast<size_t>(ceil_div(count * bits, int64_t{8})));
    if (count * bits % 8 != 0) row[offset + count * bits / 8] &= std::byte{0xf};
  });
  for_groups(layout, length, [&](int64_t group, int64_t scale, int64_t zero, int64_t minimum) {
    std::memcpy(row + scale, scales + group * bytes, static_cast<size_t>(bytes));
    if (format.zeros) {
      const auto value = static_cast<int16_t>(std::clamp(zeros[group], -32768, 32767));
      std::memcpy(row + zero, &value, sizeof(value));
    }
    if (format.minima)
      std::memcpy(row + minimum, minima + group * bytes, static_cast<size_t>(bytes));
  });
}

}  // namespace sinter
