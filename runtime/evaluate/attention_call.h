// The operands of an attention on the host, for the ops that differ in their order of operations.
#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "ir/attention_dropout.h"
#include "ir/attention_heads.h"
#include "ir/row_numbers.h"
#include "runtime/evaluate/ops.h"

namespace sinter {

/// T: float, or double in precise evaluation. Tokens are numbered over all leading axes.
template <typename T>
class AttentionCall {
 public:
  /// The keys that a token sees, numbered 0 .. count - 1: of `sink` keys row j is key j, the others
  /// are the rows from `low` on. No key is of the sink where both touch.
  struct SeenRows {
    int64_t low = 0, count = 0, sink = 0;

    int64_t row(int64_t key) const { return key < sink ? key : low + key - sink; }
    /// The row is a key.
    bool has(int64_t row) const { return row < sink || (row >= low && row - low < count - sink); }
    /// The first key of a row that is at least `row`.
    int64_t key_at_least(int64_t row) const {
      if (row < sink) return row;
      return std::clamp<int64_t>(row - low, 0, count - sink) + sink;
    }
  };

  /// `mask`: the operand that is the mask, if there is one; the summary of its tiles is the next.
  explicit AttentionCall(const OpCall& call, size_t mask = 5)
      : call_(call),
        heads_(attention_heads(call.op.attrs, call.operand_type(1), call.operand_type(2))),
        q_(dense_elements(call.operands[0], q_scratch_)),
        keys_(dense_elements(call.operands[1], keys_scratch_)),
        values_(dense_elements(call.operands[2], values_scratch_)),
        first_(dense_elements(call.operands[3], first_scratch_)),
        last_(dense_elements(call.operands[4], last_scratch_)) {
    const size_t rank = call.operands[0].dims.size();
    sequence_tokens_ = call.operands[0].dims[rank - 2];
    rows_ = call.operands[1].dims[rank - 2];
    const size_t count = operands_before_seed(call.op);
    if (count > mask) mask_ = of_sequences(mask, {sequence_tokens_, rows_});
    if (count < call.operands.size()) {
      std::vector<int32_t> scratch;
      seed_ = *dense_elements(call.operands[count], scratch);
      dropout_threshold_ = dropout_threshold(call.op.attrs.template get<double>(AttrName::dropout));
    }
    if (count > mask + 1) {
      const auto& tiles = call.operands[mask + 1].dims;
      tiles_ = of_sequences(mask + 1, {tiles[tiles.size() - 2], tiles.back()});
    }
  }

  const AttentionHeads& heads() const { return heads_; }
  /// The tokens of all sequences.
  int64_t tokens() const {
    return call_.operands[0].volume() / std::max<int64_t>(1, heads_.count * heads_.width);
  }
  int64_t sequence_tokens() const { return sequence_tokens_; }
  /// Rows of keys of a sequence.
  int64_t rows() const { return rows_; }
  /// The place of a token's head in a value [..., heads, N].
  int64_t place_of_head(int64_t token, int64_t head) const {
    return (token / sequence_tokens_ * heads_.count + head) * sequence_tokens_ +
           token % sequence_tokens_;
  }
  bool empty_zero() const { return call_.op.attrs.is_set(AttrName::empty_zero); }
  /// An attribute that may be absent: 0.
  double number(AttrName name) const { return real_or_zero(call_.op.attrs, name); }

  /// The first row that the token may see, before a window.
  int64_t first(int64_t token) const { return static_cast<int64_t>(first_[token]); }
  const T* query(int64_t token, int64_t head) const {
    return q_ + (token * heads_.count + head) * heads_.width;
  }
  const T* key(int64_t token, int64_t row, int64_t kv_head) const {
    return keys_ + (row_of(token, row) * heads_.kv_count + kv_head) * heads_.width;
  }
  const T* value(int64_t token, int64_t row, int64_t kv_head) const {
    return values_ + (row_of(token, row) * heads_.kv_count + kv_head) * heads_.value_width;
  }

  bool has_mask() const { return !mask_.dims.empty(); }
  /// The mask has numbers, which are added to the scores; else truth values.
  bool adds_mask() const { return has_mask() && mask_.storage != Storage::i1; }
  /// The mask of key `j` of those that the token sees, of the head that evaluate() is at: a number,
  /// or 0 or -inf.
  T mask(int64_t j) const { return masks_[static_cast<size_t>(j)]; }
  /// The score of that key with its mask.
  T masked(T score, int64_t j) const {
    if (!has_mask()) return score;
    return adds_mask() ? score + mask(j) : mask(j) == 0 ? score : mask(j);
  }

  bool has_dropout() const { return dropout_threshold_ > 0; }
  /// Whether a dropout leaves the weight of a row that a token's head sees as it is, but for
  /// dropped_scale().
  bool keeps(int64_t token, int64_t head, int64_t row) const {
    if (!has_dropout()) return true;
    const int64_t of_all = token / sequence_tokens_ * heads_.count + head;
    const int key = static_cast<int>(row);
    return dropout_keeps(dropout_word(dropout_row(seed_, static_cast<math::u32>(of_all),
                                                  static_cast<math::u32>(token % sequence_tokens_)),
                                      dropout_pair(key)),
                         key % 16 >= 8, dropout_threshold_);
  }
  /// The factor of the weights that the dropout keeps; 1 without one.
  float dropped_scale() const { return has_dropout() ? dropout_scale(dropout_threshold_) : 1.0f; }

  /// The summary of the mask, if there is one, shows a key of a tile of keys to some token of the
  /// tile of `tile_tokens` tokens that the token is in.
  bool shows_tile(int64_t token, int64_t head, int64_t tile_tokens, int64_t tile) const {
    if (tiles_.dims.empty()) return true;
    const int64_t place =
        place_of(tiles_, token, head, token % sequence_tokens_ / tile_tokens, tile);
    return tiles_.data[place] != std::byte{0};
  }

  /// Calls visit(token, head, keys) for each head of each token, in the order of the result.
  template <typename Visit>
  Status for_each_head(Visit&& visit) {
    for (int64_t token = 0; token < tokens(); ++token) {
      SINTER_LET(keys, seen_by(token));
      for (int64_t head = 0; head < heads_.count; ++head) {
        if (has_mask()) read_mask(token, head, keys);
        visit(token, head, keys);
      }
    }
    return {};
  }
  /// The op's result: attend(token, head, keys) gives the elements of a head.
  template <typename Attend>
  Result<HostView> evaluate(Attend&& attend) {
    SINTER_LET(value, allocate(call_.dims, call_.storage));
    std::byte* out = value.out;
    SINTER_TRY(for_each_head([&](int64_t token, int64_t head, SeenRows keys) {
      const std::vector<T> elements = attend(token, head, keys);
      store_run(elements.data(), heads_.value_width, call_.storage, out);
      out += heads_.value_width * whole_bytes(call_.storage);
    }));
    return value.view;
  }

 private:
  static constexpr int64_t kMaxRows = int64_t{1} << 48;

  /// An error if the token sees rows that are not there and the op does not allow it.
  Result<SeenRows> seen_by(int64_t token) const {
    int64_t low = first_[token], last = last_[token];
    const int64_t sink = attention_sink(call_.op.attrs);
    const bool sees = low <= last || (sink > 0 && last >= 0);
    if (sees && !clamps_rows(call_.op) && (low < 0 || last >= rows_))
      return call_.error(
          fmt::format("token {} sees rows {} .. {} of 0 .. {}", token, low, last, rows_ - 1),
          "check the inputs");
    if (const AttrValue* window = call_.op.attrs.find(AttrName::window))
      low = std::max(low, last - std::min(std::get<int64_t>(*window), kMaxRows) + 1);
    low = std::max<int64_t>(low, 0);
    last = std::min(last, rows_ - 1);
    return with_sink(last < low ? SeenRows{} : SeenRows{low, last - low + 1},
                     std::min(sink, last + 1));
  }
  /// Adds the rows 0 .. sink - 1, all at most the range's last row.
  static SeenRows with_sink(SeenRows range, int64_t sink) {
    if (sink <= 0) return range;
    if (range.count == 0) return {0, sink};
    if (range.low <= sink) return {0, range.low + range.count};
    return {range.low, sink + range.count, sink};
  }

  void read_mask(int64_t token, int64_t head, SeenRows keys) {
    masks_.resize(static_cast<size_t>(keys.count));
    read_masks(token, head, 0, keys.sink, masks_.data());
    read_masks(token, head, keys.low, keys.count - keys.sink, masks_.data() + keys.sink);
  }
  /// The masks of the rows row .. row + count - 1.
  void read_masks(int64_t token, int64_t head, int64_t row, int64_t count, T* out) const {
    const std::byte* data =
        mask_.data +
        place_of(mask_, token, head, token % sequence_tokens_, row) * whole_bytes(mask_.storage);
    const int64_t stride = mask_.strides.back();
    if (adds_mask()) return load_run(mask_.storage, data, stride, count, out);
    std::vector<uint8_t> truths(static_cast<size_t>(count));
    load_run(mask_.storage, data, stride, count, truths.data());
    std::transform(truths.begin(), truths.end(), out,
                   [](uint8_t seen) { return seen ? T{0} : -std::numeric_limits<T>::infinity(); });
  }

  /// A mask, or its summary, repeated to the axes [..., heads, last two].
  HostView of_sequences(size_t operand, std::array<int64_t, 2> last) const {
    const auto& q = call_.operands[0].dims;
    Extents dims(q.begin(), q.end() - 2);
    dims.append({heads_.count, last[0], last[1]});
    return broadcast_view(call_.operands[operand], dims);
  }
  /// The element of such a value for a token's head; an axis of one element repeats it.
  int64_t place_of(const HostView& view, int64_t token, int64_t head, int64_t row,
                   int64_t column) const {
    const size_t batch = view.dims.size() - 3;
    const auto step = [&](size_t axis, int64_t index) {
      return view.dims[axis] == 1 ? 0 : index * view.strides[axis];
    };
    int64_t place = step(batch, head) + step(batch + 1, row) + step(batch + 2, column);
    int64_t sequence = token / sequence_tokens_;
    for (size_t axis = batch; axis-- > 0; sequence /= view.dims[axis])
      place += sequence % view.dims[axis] * view.strides[axis];
    return place;
  }
  /// A row of the token's sequence, counted over all sequences.
  int64_t row_of(int64_t token, int64_t row) const {
    return token / sequence_tokens_ * rows_ + row;
  }

  const OpCall& call_;
  AttentionHeads heads_;
  std::vector<T> q_scratch_, keys_scratch_, values_scratch_;
  std::vector<int32_t> first_scratch_, last_scratch_;
  const T *q_, *keys_, *values_;
  const int32_t *first_, *last_;
  HostView mask_, tiles_;
  int32_t seed_ = 0;
  int dropout_threshold_ = 0;  // 0: no dropout
  std::vector<T> masks_;       // of the keys that a token's head sees
  int64_t sequence_tokens_ = 0, rows_ = 0;
};

}  // namespace sinter
