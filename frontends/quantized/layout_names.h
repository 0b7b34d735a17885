// The names of the tensors in which a layout has a weight.
#pragma once

#include <string_view>

#include "frontends/quantized/scheme.h"

namespace sinter {

/// Suffixes after the linear's name; empty: the layout has no such tensor.
struct LayoutNames {
  WeightLayout layout;
  std::string_view codes, scales, zeros, groups, factor;
};

inline constexpr LayoutNames kLayoutNames[] = {
    {WeightLayout::gptq, ".qweight", ".scales", ".qzeros", ".g_idx", ""},
    {WeightLayout::awq, ".qweight", ".scales", ".qzeros", "", ""},
    {WeightLayout::packed, ".weight_packed", ".weight_scale", ".weight_zero_point", ".weight_g_idx",
     ""},
    {WeightLayout::plain, ".weight", ".weight_scale", ".weight_zero_point", "", ""},
    {WeightLayout::inverse, ".weight", ".weight_scale_inv", "", "", ""},
    {WeightLayout::pairs, ".weight_packed", ".weight_scale", "", "", ".weight_global_scale"},
    {WeightLayout::modelopt, ".weight", ".weight_scale", "", "", ".weight_scale_2"},
};

/// The extents of a weight in layout `packed`.
inline constexpr std::string_view kShapeEnd = ".weight_shape";

const LayoutNames& names_of(WeightLayout layout);

}  // namespace sinter
