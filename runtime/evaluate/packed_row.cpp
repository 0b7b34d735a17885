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

/// The place of a group in a row.
struct GroupPlace {
  int64_t scale, zero, minimum;  // offsets
  int64_t part, upper_part;      // offsets in bits
  int64_t factor, round;         // of parts: the offset of its factor, and which one it is
};

/// Calls place(group, GroupPlace).
template <typename Place>
void for_groups(const CodeLayout& layout, int64_t length, Place&& place) {
  if (layout.group == 0) {
    const int64_t tail = layout.step_offset(length, length);
    place(int64_t{0}, GroupPlace{tail, tail + 4, tail + 8, 0, 0, 0, 0});
    return;
  }
  for_steps(layout, length, [&](int64_t first, int rounds, int64_t offset) {
    for (int r = 0; r < rounds; ++r)
      for (int k = 0; k < kCodeRound; k += layout.group) {
        const int64_t code = (first + r) * kCodeRound + k;
        if (code >= length) return;
        const int entry = layout.entry(k / kCodeChunk, r, rounds);
        place(
            code / layout.group,
            GroupPlace{offset + layout.scales(rounds) + entry * layout.scale_bytes,
                       offset + layout.zeros_at(rounds) + entry * 2,
                       offset + layout.minima_at(rounds) + entry * layout.scale_bytes,
                       8 * (offset + layout.scales(rounds)) + entry * layout.part_low(),
                       8 * (offset + layout.upper_parts_at(rounds)) + entry * layout.part_upper(),
                       offset + layout.factors_at(rounds) + r * layout.factor_bytes(), first + r});
      }
  });
}

/// The bits from `bit` on in the byte that has them.
uint32_t bits_at(const std::byte* row, int64_t bit) {
  return static_cast<uint32_t>(row[bit / 8]) >> bit % 8;
}
void set_bits(std::byte* row, int64_t bit, int count, uint32_t value) {
  row[bit / 8] |= static_cast<std::byte>((value & ((1u << count) - 1)) << bit % 8);
}

CodeParts read_parts(const CodeLayout& layout, const GroupPlace& place, const std::byte* row) {
  return code_parts(layout, bits_at(row, place.part), bits_at(row, place.upper_part));
}
void write_parts(const CodeLayout& layout, const GroupPlace& place, int32_t joined,
                 std::byte* row) {
  const auto scale = static_cast<uint32_t>(static_cast<int16_t>(joined)) +
                     (layout.part_bits == 6 && !layout.minima ? 32 : 0);
  const auto minimum = static_cast<uint32_t>(joined) >> 16;
  if (layout.part_bits == 8) return set_bits(row, place.part, 8, scale);
  set_bits(row, place.part, 4, scale);
  set_bits(row, place.upper_part, 2, scale >> 4);
  if (!layout.minima) return;
  set_bits(row, place.part + 4, 4, minimum);
  set_bits(row, place.upper_part + 2, 2, minimum >> 4);
}

/// Calls chunk(its first code, the offsets of its bytes in the two planes of the row).
template <typename Chunk>
void for_chunks(const CodeLayout& layout, int64_t length, Chunk&& chunk) {
  for_steps(layout, length, [&](int64_t first, int rounds, int64_t offset) {
    for (int r = 0; r < rounds; ++r)
      for (int lane = 0; lane < kCodeLanes; ++lane) {
        const int64_t code = (first + r) * kCodeRound + lane * kCodeChunk;
        if (code >= length) return;
        const int64_t place = lane * rounds + r;
        chunk(code, offset + place * layout.lane_bytes(),
              offset + layout.upper(rounds) + place * layout.upper_bits());
      }
  });
}

/// A copy of a size that the compiler knows.
template <size_t size>
void copy_bytes(std::byte* to, const std::byte* from) {
  std::memcpy(to, from, size);
}

/// The codes of a chunk, of 5 or 6 bits: four bits of each, and their upper bits.
struct CodePlanes {
  uint32_t low = 0, upper = 0;

  static CodePlanes read(int upper_bits, const std::byte* low, const std::byte* upper) {
    CodePlanes planes;
    std::memcpy(&planes.low, low, sizeof planes.low);
    std::memcpy(&planes.upper, upper, static_cast<size_t>(upper_bits));
    return planes;
  }
  uint32_t code(int upper_bits, int k) const {
    return (low >> 4 * k & 15u) | (upper >> upper_bits * k & ((1u << upper_bits) - 1)) << 4;
  }
};
CodePlanes planes_of_dense(int upper_bits, const std::byte* dense, int64_t count) {
  const int bits = 4 + upper_bits;
  uint64_t all = 0;
  std::memcpy(&all, dense, static_cast<size_t>(ceil_div(count * bits, int64_t{8})));
  CodePlanes planes;
  for (int k = 0; k < count; ++k) {
    const auto code = static_cast<uint32_t>(all >> k * bits) & ((1u << bits) - 1);
    planes.low |= (code & 15u) << 4 * k;
    planes.upper |= code >> 4 << upper_bits * k;
  }
  return planes;
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
  for_groups(layout, length, [&](int64_t group, const GroupPlace& place) {
    const auto at = static_cast<size_t>(group);
    if (format.part_bits != 0) {
      const CodeParts parts = read_parts(layout, place, row);
      load_run(storage, row + place.factor, 1, 1, &scales[at]);
      scales[at] *= static_cast<T>(parts.scale);
      if (!format.minima) return;
      load_run(storage, row + place.factor + layout.scale_bytes, 1, 1, &minima[at]);
      minima[at] *= static_cast<T>(parts.minimum);
      return;
    }
    load_run(storage, row + place.scale, 1, 1, &scales[at]);
    if (format.zeros) {
      int16_t value = 0;
      std::memcpy(&value, row + place.zero, sizeof(value));
      zeros[at] = value;
    }
    if (format.minima) load_run(storage, row + place.minimum, 1, 1, &minima[at]);
  });
  const int in_word = 32 / layout.low_bits();
  for_chunks(layout, length, [&](int64_t first, int64_t offset, int64_t upper) {
    const int64_t count = std::min<int64_t>(kCodeChunk, length - first);
    const CodePlanes planes = CodePlanes::read(layout.upper_bits(), row + offset, row + upper);
    for (int64_t k = 0; k < count; ++k) {
      uint32_t word = 0;
      std::memcpy(&word, row + offset + k / in_word * 4, sizeof(word));
      float value =
          layout.upper_bits() > 0
              ? code_value(format.code, planes.code(layout.upper_bits(), static_cast<int>(k)), 0)
              : code_value(format.code, word, static_cast<int>(k % in_word));
      if (format.zeros)
        value -= zeros[static_cast<size_t>(format.group == 0 ? 0 : (first + k) / format.group)];
      codes[static_cast<size_t>(first + k)] = value;
    }
  });
}
template struct UnpackedRow<float>;
template struct UnpackedRow<double>;

DenseCodes DenseCodes::row(const CodeFormat& format, int64_t length, int64_t m) const {
  const int64_t groups = m * code_groups(format, length);
  const int64_t scale = m * code_scales(format, length) * format.layout().scale_bytes;
  const auto at = [](const auto* all, int64_t n) { return all ? all + n : nullptr; };
  return {words + m * code_words(format, length), scales + scale, at(zeros, groups),
          at(minima, scale), at(parts, groups)};
}

void pack_row(const CodeFormat& format, int64_t length, const DenseCodes& codes, std::byte* row) {
  const CodeLayout layout = format.layout();
  std::fill_n(row, layout.row_bytes(length), std::byte{0});
  const int64_t bits = format.bits();
  const auto* dense = reinterpret_cast<const std::byte*>(codes.words);
  for_chunks(layout, length, [&](int64_t first, int64_t offset, int64_t upper) {
    // A chunk has `bits` bytes. Codes behind the row's end are 0.
    const int64_t count = std::min<int64_t>(kCodeChunk, length - first);
    if (count == kCodeChunk && bits == 4) return copy_bytes<4>(row + offset, dense + first / 2);
    if (count == kCodeChunk && bits == 8) return copy_bytes<8>(row + offset, dense + first);
    if (layout.upper_bits() > 0) {
      const CodePlanes planes =
          planes_of_dense(layout.upper_bits(), dense + first * bits / 8, count);
      std::memcpy(row + offset, &planes.low, sizeof planes.low);
      std::memcpy(row + upper, &planes.upper, static_cast<size_t>(layout.upper_bits()));
      return;
    }
    std::memcpy(row + offset, dense + first * bits / 8,
                static_cast<size_t>(ceil_div(count * bits, int64_t{8})));
    if (count * bits % 8 != 0) row[offset + count * bits / 8] &= std::byte{0xf};
  });
  const auto copy_scale = [&](int64_t to, const std::byte* from, int64_t n) {
    std::memcpy(row + to, from + n * layout.scale_bytes, static_cast<size_t>(layout.scale_bytes));
  };
  for_groups(layout, length, [&](int64_t group, const GroupPlace& place) {
    if (format.part_bits != 0) {
      write_parts(layout, place, codes.parts[group], row);
      copy_scale(place.factor, codes.scales, place.round);
      if (format.minima) copy_scale(place.factor + layout.scale_bytes, codes.minima, place.round);
      return;
    }
    copy_scale(place.scale, codes.scales, group);
    if (format.zeros) {
      const auto value = static_cast<int16_t>(std::clamp(codes.zeros[group], -32768, 32767));
      std::memcpy(row + place.zero, &value, sizeof(value));
    }
    if (format.minima) copy_scale(place.minimum, codes.minima, group);
  });
}

}  // namespace sinter
