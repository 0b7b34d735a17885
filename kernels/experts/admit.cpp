// The epilogue of expert_linear may need several rows of a matrix together, as SiLU(gate) up needs
// rows j and F + j: a warp has whole classes of them (ir/colocation.h).
#include "ir/grouping.h"
#include "kernels/colocated_epilogue.h"
#include "kernels/experts/layout.h"

namespace sinter {

std::optional<Verdict> admits_expert_epilogue(const GroupView& group, GroupShape&) {
  auto deal = colocated_epilogue(group);
  if (auto* refusal = std::get_if<Verdict>(&deal)) return std::move(*refusal);
  if (kExpertWarpRows % std::get<ColocatedRows>(deal).units == 0) return std::nullopt;
  return refuse(Reason::profit_configuration,
                fmt::format("the sums of {} rows of {}", std::get<ColocatedRows>(deal).units,
                            group.problem.name(group.anchor())));
}

}  // namespace sinter
