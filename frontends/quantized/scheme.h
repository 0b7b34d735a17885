// How the weights of a checkpoint are quantized: what its quantization config says.
//
// A weight W [out, in] of the linear p is W[o, i] = scale * (code - zero); a scale and a zero point
// belong to a group of codes; a scale of two parts is their product or quotient, in float32. Fields
// of fewer than 8 bits are packed into int32 words, the first field in the lowest bits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "frontends/quantized/module_names.h"

namespace sinter {

/// The tensors in which a checkpoint has a weight, and how codes stand in them. G groups a row;
/// words(n) = ceil(n * bits / 32).
enum class WeightLayout : uint8_t {
  /// p.qweight I32 [words(in), out], packed along in; p.qzeros I32 [G, words(out)], packed along
  /// out; p.scales [G, out]; perhaps p.g_idx I32 [in], the group of each input. Codes and zero
  /// points are unsigned. A zero point is stored less 1 (WeightScheme::zeros_less_one).
  gptq,
  /// p.qweight I32 [in, words(out)], p.qzeros I32 [G, words(out)], p.scales [G, out]. Field k of a
  /// word of 8 is column 0, 2, 4, 6, 1, 3, 5, 7 of the 8. Codes and zero points are unsigned.
  awq,
  /// p.weight_packed I32 [out, words(in)], packed along in; p.weight_scale [out, G];
  /// p.weight_shape I64 [2]: out, in; unless symmetric p.weight_zero_point I32 [words(out), G],
  /// packed along out; perhaps p.weight_g_idx I32 [in]. Codes and zero points are signed and stored
  /// plus 2^(bits-1).
  packed,
  /// p.weight I8 or F8_E4M3 [out, in]; p.weight_scale; unless symmetric p.weight_zero_point I8 of
  /// the shape of the scales. Symmetric weights of channels or groups, in this layout and in
  /// `packed`, may have a leading axis of experts in all of their tensors.
  plain,
  /// p.weight F8_E4M3 [out, in]; p.weight_scale_inv: the scales, despite the name.
  inverse,
  /// p.weight_packed U8 [out, in / 2], packed along in; p.weight_scale [out, G]. Scales e8m0 (U8 or
  /// F8_E8M0) are powers of two; scales F8_E4M3 are divided by p.weight_global_scale F32 [1].
  pairs,
  /// p.weight U8 [out, in / 2], packed along in; p.weight_scale F8_E4M3 [out, G], multiplied by
  /// p.weight_scale_2 F32.
  modelopt,
};

/// The codes that share a scale.
enum class ScaleStrategy : uint8_t {
  tensor,   // all; scales [1]
  channel,  // a row; scales [out, 1]
  group,    // `group` codes of a row; scales [out, G]
  block,    // a square of kScaleBlock rows and columns; scales [ceil(out / b), ceil(in / b)]
};
inline constexpr int64_t kScaleBlock = 128;

struct WeightScheme {
  WeightLayout layout = WeightLayout::plain;
  int bits = 8;           // 4 or 8
  bool is_float = false;  // e4m3 of 8 bits, e2m1 of 4, else an integer
  ScaleStrategy strategy = ScaleStrategy::channel;
  int64_t group = 0;       // of the strategy `group`; the last one of a row may be short
  bool symmetric = true;   // no zero points, or (gptq) all of them 2^(bits-1)
  bool act_order = false;  // there may be a tensor with the group of each input
  /// Layout pairs: scales are exponents of two and there is no factor of them.
  bool exponents = false;
  /// Layout gptq: what the config says of the zero points. Where the weights are symmetric, the
  /// zero points themselves say it.
  bool zeros_less_one = false;
  friend bool operator==(const WeightScheme&, const WeightScheme&) = default;
};

/// "INT4, groups of 128, zero points": for messages and reports.
std::string to_string(const WeightScheme& scheme);

struct Quantization {
  struct Group {
    WeightScheme scheme;
    ModuleNames targets;
  };
  std::string method;  // as the config names it: "gptq"
  std::vector<Group> groups;
  ModuleNames ignored;
  /// `ignored` is a rough list: the one group counts wherever the files hold codes.
  bool files_decide = false;

  /// The scheme of a linear or a table, such as "model.layers.0.mlp.up_proj"; null: it is not
  /// quantized. The first group that has it counts.
  Result<const WeightScheme*> scheme_of(std::string_view module) const;
  /// "gptq: INT4, groups of 128".
  std::string description() const;
};

}  // namespace sinter
