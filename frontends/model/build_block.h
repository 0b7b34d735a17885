// The graph of one transformer block, and what the blocks of an entry share.
#pragma once

#include <map>

#include "frontends/model/build_weights.h"
#include "ir/builder.h"

namespace sinter {

/// Appends a model's ops to one entry's graph. Leaves appear before their first use, once.
class ModelGraph {
 public:
  /// orders: order_weights() of the model, borrowed.
  ModelGraph(const ModelSpec& spec, const Module& module, const OrderWeights& orders, Graph& graph);

  const ModelSpec& spec;
  Builder builder;

  Dim tokens;                // extent of the token axis
  Dim visible_rows;          // cache rows that attention may look at, from the first
  ValueId pos, slot, first;  // i32 [tokens]: position in the sequence, cache row, cache row of the
                             // sequence's first token
  ValueId last;              // i32 [tokens]: the last cache row that a token sees
                             // An encoder has no cache: first and last are rows of the call.
  ValueId near_first, near_last;  // i32 [tokens]: an encoder's rows within the window
  ValueId position_bias;  // f32 [heads, tokens, tokens]: added to scores, where there is one
  struct RotaryTables {
    ValueId cos, sin;  // [n, rotary/2]
  };
  std::optional<RotaryTables> token_rope;  // of the tokens; none with learned positions
  std::optional<RotaryTables> local_rope;  // of the tokens, in layers with a window
  std::optional<RotaryTables> row_rope;    // streaming cache: of its visible rows

  ValueId input(std::string name, Dim extent);  // i32 [extent]
  ValueId weight(const std::string& name) { return leaf(OpKind::weight, name); }
  /// A matrix that is multiplied: the weight, or the elements of a packed one.
  ValueId matrix(const std::string& name);
  /// x with its columns in the order that the matrix `name` has.
  ValueId columns_for(ValueId x, const std::string& name);
  ValueId state(const std::string& name) { return leaf(OpKind::state, name); }
  /// linear with weight `name`.weight and, if `bias`, `name`.bias.
  ValueId linear(ValueId x, const std::string& name, bool bias);
  /// expert_linear with weight `name`.weight, whose rows may be codes.
  ValueId expert_linear(ValueId x, ValueId experts, const std::string& name);
  ValueId norm(ValueId x, const std::string& name);
  /// x times a factor that is not rounded to the type of x.
  ValueId scaled(ValueId x, double factor, const std::string& name);
  ValueId named(OpKind kind, llvm::ArrayRef<ValueId> operands, std::string name) {
    return builder.op(kind, operands, {}, std::move(name));
  }

 private:
  ValueId leaf(OpKind kind, const std::string& name);

  std::map<std::string, TensorType, std::less<>> types_;  // of weights and states
  std::map<std::string, ValueId, std::less<>> leaves_;
  std::map<std::string, Attributes, std::less<>> packed_;  // of packed weights: size and codes
  const OrderWeights& orders_;
  std::map<std::pair<uint32_t, std::string>, ValueId> ordered_;  // by value and order
};

/// f32 cos(p * f) and sin(...) for positions p : i32 [n] and the weight `frequencies` f, rounded to
/// the spec's dtype; values are named `prefix` + "cos", ...
ModelGraph::RotaryTables build_rope_tables(ModelGraph& graph, const Rope& rope,
                                           const std::string& frequencies, ValueId positions,
                                           const std::string& prefix);

/// The residual stream [tokens, hidden] after block `layer`, given the one before it.
ValueId build_block(ModelGraph& graph, int64_t layer, ValueId x);

}  // namespace sinter
