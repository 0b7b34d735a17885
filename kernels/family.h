// A kernel family: everything that other rooms ask about one kind of kernel. A record of functions,
// without state; a test may copy one and change a field. Rooms above see this header and
// kernels/registry.h, never a family's folder.
//
// Fields without a default must be set. The others stand for the conservative answer.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "device/tuned_form.h"
#include "kernels/cost.h"
#include "kernels/group.h"

namespace sinter {

class Builder;
struct EmitContext;  // codegen/emission
struct KernelBody;
struct Step;  // plan
struct StepContext;

/// The text of a kernel that computes the context's group. Pure.
using EmitKernel = Result<KernelBody>(const EmitContext&);
/// The step of a plan that computes the context's members: a library's call.
using LowerStep = Result<Step>(const StepContext&);

/// What a neighbour of an anchor may see of one of its operands, or of its result.
enum class Port : uint8_t {
  closed,   // nothing: the value is in memory
  element,  // one element at a time, by the thread that needs it
  row,      // whole rows, by all threads of the block that needs them
  tile,     // several rows at a time, in the order in which the family keeps its tile
};
constexpr bool is_open(Port port) { return port != Port::closed; }

struct Ports {
  struct Place {
    Port port = Port::closed;
    uint32_t row_axes = 1;  // leading axes of `walked` that number the rows
    /// Of an operand: the extents of the loop in which the family walks it, of as many elements in
    /// the same order; empty: the operand's own dims. A result is walked in its own dims.
    Dims walked = {};
  };
  llvm::SmallVector<Place, 4> operands;  // those beyond the list are closed
  Place result;
  int64_t max_blocks = 0;  // independent parts of the result, without an epilogue

  Place operand(size_t index) const { return index < operands.size() ? operands[index] : Place{}; }
  bool any_open() const {
    return is_open(result.port) ||
           llvm::any_of(operands, [](const Place& place) { return is_open(place.port); });
  }
};

/// What a kernel would read before it waits for the kernels ahead of it, by inputs of its group.
struct EarlyWish {
  llvm::SmallVector<uint32_t, 4> needed;  // inputs that it needs for its longest work
  llvm::SmallVector<uint32_t, 4> rows;    // inputs of role `cache`: all rows but this call's
  bool rest_if_all = false;  // the other inputs too, if every one of them is complete by then
};

/// Forms of a family's kernels that are chosen by timing. No form changes a bit of a result.
struct Tuning {
  /// What a form is chosen for, for an op of the family: the op alone and not what is fused with
  /// it, so that the fused and the unfused plan of a module have the same forms.
  std::string (&key)(const Graph&, const Op&, llvm::ArrayRef<Symbol>);
  /// Forms worth timing, the schedule's own first. Empty: the device has none.
  std::vector<TunedForm> (&candidates)(const Graph&, const Op&, llvm::ArrayRef<Symbol>,
                                       const DeviceDescription&);
  /// Refuses a form, read from a file, that no kernel of the family can have. The error's `where`
  /// is the name of the number at fault, or empty.
  Status (&check)(const TunedForm&);
};

struct KernelFamily {
  std::string_view name;
  enum class Form : uint8_t {
    rows,      // ops that walk the same rows; no anchor
    anchored,  // built around an op of `anchors`
    call,      // a step of its own around an op of `anchors`
  };
  Form form;
  llvm::ArrayRef<OpKind> anchors;  // ops that it computes; form rows: none
  std::variant<EmitKernel*, LowerStep*> make;
  /// A kernel of these ops, each of its blocks at least `min_threads` wide. nullopt: no
  /// configuration fits the device.
  std::optional<KernelCost> (&cost)(const GroupView&, int64_t min_threads);

  /// Form rows: the family makes kernels of ops with these facts. The first family of the registry
  /// that does is taken.
  bool (*claims)(llvm::ArrayRef<const OpFacts*>) = nullptr;
  /// Form call: the anchor of the call that computes exactly these members.
  std::optional<ValueId> (*call_of)(const FusionProblem&, Members) = nullptr;
  /// Ops of the family that may share a kernel with an anchor whose operands they have: several
  /// results of one computation.
  llvm::ArrayRef<OpKind> companions = {};
  /// Its kernels take about as long as a launch: their launches overlap, whatever their size.
  bool latency_bound = false;
  Ports (*ports)(const Graph&, const Op&) = nullptr;  // null: all closed
  /// What only the family can refuse of a prologue; of an epilogue, which may change
  /// `max_blocks` of the merged shape. null: every epilogue whose reads fit the port of the result.
  std::optional<Verdict> (*admits_prologue)(const GroupView&) = nullptr;
  std::optional<Verdict> (*admits_epilogue)(const GroupView&, GroupShape& merged) = nullptr;
  /// The family's own op in place of one that anybody may compute: `linear` by `gemv`. The operands
  /// of `op` are values of the builder's graph. nullopt: the op stays.
  std::optional<ValueId> (*choose)(Builder&, const Op&) = nullptr;
  /// Its kernel can read the operand of `op` where it is. null: matrices must have rows of
  /// neighbouring elements, other values must be dense.
  bool (*addresses)(const Graph&, const Op&, size_t operand, llvm::ArrayRef<Symbol>) = nullptr;
  EarlyWish (*early_reads)(const Graph& group, llvm::ArrayRef<Symbol>) = nullptr;
  const Tuning* tuning = nullptr;
};

}  // namespace sinter
