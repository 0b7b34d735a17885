// Groups as text, for all tests of emitted kernels.
#pragma once

#include <string>
#include <vector>

#include "codegen/lowering/emit.h"

namespace sinter {

/// N, M in [0, 4096]; K in [0, 65536]; W in [0, 1024] step 8; B in [0, 8];
/// F in [0, 256].
const std::vector<Symbol>& group_symbols();

/// In `text` DTYPE stands for an element type, WIDTH for the elements of a row and HALF for half of
/// them.
struct GroupText {
  const char* name;
  uint32_t prefix_rank;
  const char* text;
  std::vector<KernelPart> side_by_side = {};  // empty: the group is one part

  std::vector<KernelPart> parts() const {
    return side_by_side.empty() ? std::vector{KernelPart{prefix_rank, {}}} : side_by_side;
  }
};

/// Groups over rows of any width.
extern const std::vector<GroupText> kRowGroups;
/// Groups that fix their sizes.
extern const std::vector<GroupText> kFixedGroups;
/// Column reductions over WIDTH rows or more, with a prologue and an epilogue.
extern const std::vector<GroupText> kColumnGroups;
/// Rows with sums of runs of their columns.
extern const std::vector<GroupText> kRunGroups;
/// Groups of several parts.
extern const std::vector<GroupText> kPartGroups;
/// One closed op each, read through views.
extern const std::vector<GroupText> kClosedGroups;
/// Tiles of masks, read through views.
extern const std::vector<GroupText> kMaskTilesGroups;
/// One tiled_attention each, with a prologue and an epilogue; of 16-bit types. The first has heads
/// of WIDTH elements.
extern const std::vector<GroupText> kAttentionGroups;
extern const std::vector<GroupText> kGradientGroups;
/// The same of several sequences, with masks and computed row numbers.
extern const std::vector<GroupText> kSequenceGroups;
/// The same with summaries of masks.
extern const std::vector<GroupText> kTileGroups;
/// One gemv each, with a prologue and an epilogue.
extern const std::vector<GroupText> kGemvGroups;
/// Checked ops; the row numbers are the first input of i32, or the sum or difference of it and the
/// next one.
extern const std::vector<GroupText> kCheckedGroups;
/// The choice of tokens from a vocabulary of any size.
extern const GroupText kSampleGroup;

/// The group with its placeholders filled in.
Graph make_group(const GroupText& group, DType dtype, int64_t width);

}  // namespace sinter
