// The invariants of one graph; part of the verifier.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/ADT/StringMap.h>

#include "ir/verifier.h"

namespace sinter {

/// Weights and states of a module by name.
struct ModuleLeaf {
  OpKind kind;
  const TensorType* type;
};
using ModuleLeaves = llvm::StringMap<ModuleLeaf>;

enum class GraphRole : uint8_t { entry, weight_function, alone };

struct GraphContext {
  GraphRole role = GraphRole::alone;
  Place place;  // of the graph
  llvm::ArrayRef<Symbol> symbols;
  const ModuleLeaves* leaves = nullptr;  // entry only
};

using Checked = tl::expected<void, Violation>;

inline tl::unexpected<Violation> broken(int invariant, std::string what, Place place,
                                        std::string hint) {
  return tl::make_unexpected(Violation{
      Error{fmt::format("V{}: {}", invariant, what), {}, std::move(hint), ExitCode::bad_input},
      place});
}

/// Describes the subject of an error; called only if there is one.
using What = llvm::function_ref<std::string()>;

/// Axes of a value.
inline constexpr size_t kMaxAxes = 8;
/// Names and strings of a module have at most so many bytes.
inline constexpr size_t kMaxNameBytes = 4096;

/// V2: 1 to 4096 bytes of UTF-8. `what` says whose name or string it is.
Checked check_text(std::string_view text, What what, Place place);
/// V7. `what` says whose type it is.
Checked check_type(const TensorType& type, What what, llvm::ArrayRef<Symbol> symbols, Place place);

Checked check_graph(const Graph& graph, const GraphContext& context);
/// V14 to V16, on a graph whose ids are valid.
Checked check_state_order(const Graph& graph, const GraphContext& context);
/// The elements low .. high - 1 along `axis` that a value has, in which parts are placed.
struct PlacedElements {
  int64_t axis = 0, low = 0, high = 0;
};
/// By value; nullopt: the value has all its elements.
using PlacedValues = std::vector<std::optional<PlacedElements>>;
/// A value of this type has all its elements.
inline bool is_complete(const TensorType& type, const std::optional<PlacedElements>& placed) {
  return !placed || (placed->low == 0 && Dim(placed->high) == type.dims[placed->axis]);
}
/// V19, on a graph whose ops have their inferred types. `inputs`: of a graph alone, by input; null:
/// they are not known, and count as complete. The elements of all values of the graph.
tl::expected<PlacedValues, Violation> placed_values(const Graph& graph, const GraphContext& context,
                                                    const PlacedValues* inputs = nullptr);

}  // namespace sinter
