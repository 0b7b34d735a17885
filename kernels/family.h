// A kernel family: everything that the passes, lowering and the tuner ask about one kind of kernel.
// A record of functions, without state; a test may copy one and change a field. Other rooms (the
// folders of docs/design.md) include headers directly in kernels, never headers of a family's
// folder.
//
// Fields without a default must be set. The defaults of the others are the conservative answers.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "device/tuned_form.h"
#include "ir/side_results.h"
#include "kernels/cost.h"
#include "kernels/group.h"
#include "kernels/recipe.h"

namespace sinter {

class Builder;
struct EmitContext;  // codegen/emission
struct KernelBody;
struct Step;  // plan
struct StepContext;

/// The text of a kernel that computes the context's group. Pure.
using EmitKernel = Result<KernelBody>(const EmitContext&);
/// The step of a plan that computes the context's members: a call of the library (cuBLASLt).
using LowerStep = Result<Step>(const StepContext&);

/// How ops that share a kernel with an anchor may give it an operand, or take its result.
enum class Port : uint8_t {
  closed,   // in memory only: they cannot share the kernel
  element,  // one element at a time, by the thread that needs it
  row,      // whole rows, by all threads of the block that needs them
  tile,  // an operand: several whole rows at a time; a result: chunks of 8 elements of a tile, of
         // which no row is whole; both in the family's own order
};
constexpr bool is_open(Port port) { return port != Port::closed; }

struct Ports {
  struct Place {
    Port port = Port::closed;
    uint32_t row_axes = 1;  // leading axes of `walked` that number the rows
    /// For an operand: the dims by which the kernel counts its elements, a reshape of the operand.
    /// Empty: the operand's own dims. A result has its own dims.
    Dims walked = {};
  };
  llvm::SmallVector<Place, 4> operands;  // those beyond the list are closed
  Place result;
  int64_t max_blocks = 0;  // among which the result can be divided, if there is no epilogue

  Place operand(size_t index) const { return index < operands.size() ? operands[index] : Place{}; }
  bool any_open() const {
    return is_open(result.port) ||
           llvm::any_of(operands, [](const Place& place) { return is_open(place.port); });
  }
};

/// Which inputs of its group, by index, a kernel would read before its wait
/// (kernels/common/launch.cuh).
struct EarlyWish {
  /// Inputs of its longest computation, which it reads early if `needed` and `rows` all may be.
  llvm::SmallVector<uint32_t, 4> needed;
  /// Inputs of role `cache`: all rows but those that this call appends.
  llvm::SmallVector<uint32_t, 4> rows;
  /// Reads the inputs in neither list early too, if all of them are complete by then.
  bool rest_if_all = false;
};

/// Forms of a family's kernels that are chosen by timing. No form changes a bit of a result.
struct Tuning {
  /// The key under which the form for an op of the family is filed. It depends on the op alone and
  /// not on what is fused with it, so that the fused and the unfused plan of a module have the same
  /// forms.
  std::string (&key)(const Graph&, const Op&, llvm::ArrayRef<Symbol>);
  /// Forms worth timing, the schedule's own first. Empty: there is nothing to choose on the device.
  std::vector<TunedForm> (&candidates)(const Graph&, const Op&, llvm::ArrayRef<Symbol>,
                                       const DeviceDescription&);
  /// Refuses a form, read from a file, that no kernel of the family can have. The error's `where`
  /// is the name of the number at fault, or empty.
  Status (&check)(const TunedForm&);
};

/// Whether a family's kernel of an op is faster than what would compute the op otherwise.
enum class Gain : uint8_t {
  never,
  in_some_groups,  // Choosing::gains_in says in which
  always,
};

/// An op's way of being computed, where several families could take the op.
struct KernelChoice {
  std::string_view what;  // "attention"
  std::string why;        // "more than 8 tokens of f16"
};

/// How a family chooses the ops that it computes, where several families could.
struct Choosing {
  /// Whether the family is to choose an op of an entry with such tokens under a recipe: it was
  /// asked for, or its kernel gains; and whether it gains in this group, which is built around the
  /// op. null: always.
  Gain (*gain)(const Graph&, const Op&, llvm::ArrayRef<Symbol>, Tokens, const Recipe&) = nullptr;
  bool (*gains_in)(const GroupView&) = nullptr;
  /// Chooses one of its orders for an op of an entry with such tokens, and adds the op with it. The
  /// operands of `op` are values of the builder's graph. nullopt: none of its orders fits, or the
  /// recipe allows none. null: it chooses no ops.
  std::optional<ValueId> (*choose)(Builder&, const Op&, Tokens, const Recipe&) = nullptr;
  /// Which of the kernels of an order computes an op that has it, as a number. Entries of an
  /// invariant recipe have variants by it. null: there is one kernel.
  uint8_t (*form)(const Graph&, const Op&, llvm::ArrayRef<Symbol>) = nullptr;
  /// The decision of `choose` about an op of the family, for reports. null: it is not reported.
  KernelChoice (*explain)(const Graph&, const Op& own) = nullptr;
};

struct KernelFamily {
  std::string_view name;
  enum class Kind : uint8_t {
    rows,      // a kernel of ops that walk the same rows; no anchor
    anchored,  // a kernel built around an op of `anchors` or `orders`
    call,      // a call of the library, built around an op of `anchors`
  };
  Kind kind;
  llvm::ArrayRef<OpKind> anchors = {};  // ops without an order that it computes
  llvm::ArrayRef<Order> orders = {};    // it computes the ops that have one of these
  std::variant<EmitKernel*, LowerStep*> make;
  /// The cost of a kernel of these ops whose blocks have at least `min_threads` threads. nullopt:
  /// no configuration fits the device.
  std::optional<KernelCost> (&cost)(const GroupView&, int64_t min_threads);

  /// Kind rows: whether the family makes kernels of ops with these facts. The first family of the
  /// registry that does is taken.
  bool (*claims)(llvm::ArrayRef<const OpFacts*>) = nullptr;
  /// Kind call: the anchor of the call that computes exactly these members.
  std::optional<ValueId> (*call_of)(const FusionProblem&, Members) = nullptr;
  /// `other`, whose operands are all operands of `anchor`, may join its kernel: it is another
  /// result of the same computation, its companion. Both are ops of the family. null: none may.
  bool (*is_companion)(const Op& anchor, const Op& other) = nullptr;
  /// Launch latency is a notable part of its kernels' time: their launches overlap, whatever the
  /// size of their values.
  bool latency_bound = false;
  Ports (*ports)(const Graph&, const Op&) = nullptr;  // null: all closed
  /// The family's own reasons to refuse a prologue, or an epilogue, beside what the ports say;
  /// admits_epilogue may also change `max_blocks` of the merged shape. null: no such reasons. Of a
  /// result that goes out by tile, admits_epilogue is asked where the epilogue does not take it so.
  std::optional<Verdict> (*admits_prologue)(const GroupView&) = nullptr;
  std::optional<Verdict> (*admits_epilogue)(const GroupView&, GroupShape& merged) = nullptr;
  Choosing choosing = {};
  /// Its kernel can read the operand of `op` where it is. null: matrices must have rows of
  /// neighbouring elements, other values must be dense.
  bool (*addresses)(const Graph&, const Op&, size_t operand, llvm::ArrayRef<Symbol>) = nullptr;
  /// The side result of this kind (ir/side_results.h) that the family's kernel around `op` stores,
  /// with or without the values whose elements it takes. Kind rows: that it stores in the place of
  /// `op`, a reduction. nullopt: none. null: the family stores none of any kind.
  std::optional<SideResult> (*side_result)(const Graph&, const Op& op, SideKind) = nullptr;
  EarlyWish (*early_reads)(const Graph& group, ValueId anchor, llvm::ArrayRef<Symbol>) = nullptr;
  const Tuning* tuning = nullptr;

  /// Its kernels are built around ops like this one.
  bool computes(const Op& op) const {
    const std::optional<Order> order = order_of(op);
    return order ? llvm::is_contained(orders, *order) : llvm::is_contained(anchors, op.kind);
  }
};

template <OpKind... kinds>
inline constexpr OpKind kClosedAnchors[] = {kinds...};

/// The record of a family whose kernels compute one op of these kinds and nothing else, at the
/// speed of memory.
template <OpKind... kinds>
constexpr KernelFamily closed_family(std::string_view name, EmitKernel* emit,
                                     bool latency_bound = false) {
  return {.name = name,
          .kind = KernelFamily::Kind::anchored,
          .anchors = kClosedAnchors<kinds...>,
          .make = emit,
          .cost = streaming_cost,
          .latency_bound = latency_bound};
}

}  // namespace sinter
