// The state of a graph that grows at random, shared by the files generate*.cpp.
#pragma once

#include <functional>
#include <optional>

#include "differential/generate.h"
#include "differential/random.h"
#include "ir/builder.h"
#include "ir/code_format.h"

namespace sinter {

/// Elements of a value, at most: a graph runs in about a millisecond.
inline constexpr int64_t kMaxElements = 4096;

/// The number of tokens that passes treat as a decoding step.
inline constexpr int64_t kFewTokens = 8;

/// Readers of a value that has many.
inline constexpr int64_t kManyReaders = 20;

/// Computed row numbers of 100 that are not kept inside of what they point into: they end the call.
inline constexpr int kIdsOutsidePercent = 10;

/// Tokens of a call; a multiple of 8; never more than the tokens; what may be very many, so that
/// kernels are chosen for long rows or high columns, and is seldom more than some hundreds.
inline constexpr SymbolId kTokens{0}, kKeys{1}, kSomeTokens{2}, kLong{3};

class GraphGenerator {
 public:
  GraphGenerator(Case& result, uint64_t seed);

  /// Adds ops until there are about `count`, then chooses results.
  void grow(size_t count);
  /// The same in a 16-bit type, after gradients of an attention.
  void grow_around_gradients(size_t count);
  void choose_outputs();

 private:
  using Predicate = std::function<bool(const TensorType&)>;
  using Value = std::optional<ValueId>;

  // Values that exist (generate.cpp). Overwritten state versions are never picked.
  Value pick(const Predicate& wanted);
  ValueId pick_float();  // of rank >= 1
  ValueId pick_rows();   // [rows, width] of the main type
  /// A value of that type: one that exists, or a new leaf or generator.
  ValueId value_of(const TensorType& type);
  bool alive(ValueId id) const;
  int64_t extent(Dim dim) const;
  int64_t volume_of(const TensorType& type) const;

  // New values (generate.cpp).
  ValueId input(TensorType type);
  ValueId weight(TensorType type);
  ValueId state(TensorType type);
  /// The op if it is legal and small, else nullopt.
  Value op(OpKind kind, llvm::ArrayRef<ValueId> operands, Attributes attrs = {});
  /// The newest value, which no other maker reads: it may have more elements than others.
  ValueId apart(ValueId id);
  ValueId must(OpKind kind, llvm::ArrayRef<ValueId> operands, Attributes attrs = {});
  /// Mostly one of a few numbers, so that graphs have kernels in common; else any of low .. high.
  int64_t mostly(std::initializer_list<int64_t> usual, int64_t low, int64_t high);
  int64_t any_extent();
  Dim any_dim();
  Dim any_symbol();
  DType any_float();
  /// A float type mostly, else i32, i64 or i1.
  DType any_dtype();
  std::string name(std::string_view role);

  // One random op each (generate_ops.cpp); they may decline.
  void elementwise();
  void of_integers();
  void comparison();
  void logical();
  void select();
  void cast();
  void activation();
  void norm();
  void softmax();
  void reduction();
  void view();
  ValueId view_of(ValueId x);
  void reshape(ValueId x);
  void slice(ValueId x);
  void sliced_formula();
  void broadcast(ValueId x);
  void transpose(ValueId x);
  void concat();
  void place();
  void place_parts(llvm::ArrayRef<ValueId> parts, int64_t axis);
  void copy();
  void generator();
  void ops_of_a_constant();
  void literal();
  double any_number(int unusual);
  Number any_long();
  ValueId constant(DType dtype, Dims dims);
  void fan_out();
  void rope();

  // Products (generate_products.cpp).
  void linear();
  void any_linear();
  void einsum();
  void any_einsum();
  void gemv();
  void tiled_linear();
  CodeFormat any_format();
  ValueId packed_weight(const CodeFormat& format, int64_t rows, int64_t length);
  ValueId rows_of(ValueId packed);
  void quantized();

  // Row numbers, and what reads and writes rows by them (generate_ids.cpp).
  int64_t most(Dim dim) const;  // of any values of the symbols
  ValueId integer(double value);
  int64_t state_rows(Dim count);
  Dim any_rows(int64_t usual);
  Value ids(Dim count, Dim rows);
  ValueId any_integers(Dim count, int64_t rows);
  ValueId clamped(ValueId x, int64_t rows);
  Value slots(Dim count, Dim rows);
  void embedding();
  void gather();
  void scatter();
  void experts();
  void sorted_experts(ValueId experts, int64_t matrices, ValueId x, ValueId w);
  Value write(OpKind kind, std::vector<ValueId> operands);
  void append();
  void store();
  void old_and_new();
  void overwrite_inputs();

  // Reductions over any axes and what surrounds them (generate_columns.cpp).
  Value reduced_operand();
  Attributes last_axis(ValueId x) const;
  Value reduction_prologue(ValueId x);
  std::vector<int64_t> reduced_axes(int64_t rank);
  void reduction_epilogue(ValueId x, ValueId reduced, const std::vector<int64_t>& axes);
  void axes_reduction();
  void cluster_reduction();
  void sums_of_runs();

  // Running sums (generate_scans.cpp).
  Value scanned_operand();
  Attributes scan_attributes(int64_t axis);
  void running_sum();
  Dims long_scan_dims(DType dtype);
  void long_sum();

  // Ops of tests/support/custom_ops.h (generate_custom.cpp).
  void custom();

  // Attention and what has a kernel of its own (generate_attention.cpp).
  struct Attended {
    llvm::SmallVector<ValueId, 6> operands;
    Attributes attrs;
    int64_t splits;  // of decode_attention
  };
  ValueId columns(const TensorType& type);
  ValueId sequences_of_rows(const TensorType& type, int64_t heads);
  ValueId of_sequences(ValueId numbers, const Dims& batch);
  ValueId mask_of(const Dims& scores, size_t least_rank);
  ValueId viewed(const TensorType& type);
  Dims leading_axes(int64_t largest_operand, int64_t heads);
  void add_dropout(llvm::SmallVectorImpl<ValueId>& operands, Attributes& attrs);
  void add_ranges(Attended& made, const Dims& batch, ValueId slot, Dim rows);
  std::optional<Attended> attended(int64_t max_rows);
  void attention();
  void decode_attention();
  void tiled_attention();
  void attention_gradients();
  void sample();
  void attention_softmax();

  // Parts of transformers (generate_blocks.cpp).
  ValueId project(ValueId x, int64_t width);
  ValueId normalize(ValueId x);
  ValueId rotate(ValueId x, int64_t heads);
  ValueId feed_forward(ValueId x);
  ValueId gated(ValueId x, int64_t width);
  ValueId between_linears(ValueId x);
  void linear_chain();
  ValueId attend(ValueId x);
  void pre_norm_block();
  void post_norm_block();
  void primitive_norm();
  void primitive_softmax();
  void label_sum();
  void padded_formula();
  void logits();

  Case& result_;
  Random random_;
  Graph graph_;
  Builder builder_;
  std::vector<ValueId> values_;           // all that may be read, in order of creation
  std::vector<ValueId> versions_;         // newest version of each state
  std::vector<bool> overwritten_;         // by value
  llvm::SmallVector<int64_t, 4> widths_;  // extents that many values of this graph have
  Dim rows_;
  DType main_dtype_ = DType::f32;
  bool strange_names_ = false;
  uint32_t next_name_ = 0;
};

}  // namespace sinter
