// Values as code, pulled from where they are needed back to the inputs.
//
// `value(id, coords)` gives an expression for the element of `id` at `coords` and writes the
// statements it needs, each into the outermost scope where it is valid: what depends on the row
// alone stands before the loop, and chunk loads stand before the loop over a chunk's elements. A
// value at given coordinates is computed once in a scope.
//
// Values computed in one pass over a stage and needed in a later one may be kept in registers:
// `k3[j][e]` is element e of the thread's chunk j. Values of two bytes an element stay packed as in
// memory, and what one cheap operation makes of them is computed again instead of kept.
#pragma once

#include <optional>
#include <vector>

#include "codegen/emission/emit_scope.h"

namespace sinter {

/// An element value that lives from pass `first` to pass `last`.
struct KeptValue {
  uint32_t number, stage, first, last;
  DType dtype;
};

/// The sums of a thread's chunks (ColumnLane) that belong to an operand of an output of run_sums.
inline std::string run_sums_name(int64_t output, size_t operand) {
  return fmt::format("sums{}_{}", output, operand);
}

class ValueEmitter {
 public:
  ValueEmitter(const GroupForm& form, LoopSpace& space) : form_(form), space_(space) {}

  /// Begins to write the body for one element of `stage` in `pass`; `row` is the scope around the
  /// loop. `tail`: only the first `valid` elements of a chunk exist. A stage of one element has no
  /// loop: its statements go to `row` itself. `single`: the body is for the one element `i`, which
  /// need not begin a chunk. `late`: an input of such a body that is there later than the others,
  /// see take_early().
  void open(uint32_t stage, uint32_t pass, CodeScope& row, bool tail, bool single = false,
            ValueId late = {});
  /// The loads that depend on no other value and on no branch, except the late input's loads;
  /// close() returns the code after them.
  std::string take_early();
  /// The body of the loop over chunks, or for the single element, complete.
  std::string close();

  ValueCode value(ValueId id, const IndexMap& coords);
  /// The same for a store, which rounds itself: not rounded yet if nothing else reads the value, or
  /// all do it later.
  ValueCode before_rounding(ValueId id, const IndexMap& coords, bool read_later = false);
  /// The value at the current element of the stage, as code.
  std::string element(ValueId id) {
    return value(id, space_.identity(form_.graph[id].type.dims)).text;
  }
  /// Adds a statement for the current element.
  void statement(std::string_view text) { current_->line("{}", text); }
  /// Collects the value's elements of a chunk in an array, for statements behind the chunk's
  /// elements; those that are not there are `absent`. Returns the array.
  std::string collected(ValueId id, std::string_view absent);
  /// Adds a statement behind the chunk's elements.
  void statement_of_chunk(std::string_view text) { after_ += fmt::format("{}\n", text); }
  /// Adds a statement behind the elements p and p + 1 of the chunk.
  void statement_of_pair(std::string_view text) { pairs_ += fmt::format("{}\n", text); }
  /// Writes the output's current element, or adds it where the output is run_sums; `guard`: when
  /// (empty: always). `in_pairs`: an element that nothing has read so far is rounded with its
  /// neighbour where a whole chunk is stored; returns the chunk's rounded elements then, which
  /// statement_of_pair() may read, else nothing.
  std::string store(const Task& task, const std::string& guard, bool in_pairs = false);
  /// From now on this is the result of the reduce `id`: one for the row, or an array's for each
  /// column of the chunk.
  void define_reduction(ValueId id, ValueCode result) { reductions_[id.index] = std::move(result); }

  /// Lets values live from pass to pass. First all that a pass finds computed by an earlier one are
  /// collected in `kept`; text made with the complete collection keeps them.
  void keep(std::map<std::string, KeptValue>* kept) { kept_ = kept; }
  /// Chunk loads of passes after the stage's first that depend on no other value: loads that could
  /// be made in the first pass, so that they do not wait for its reductions.
  struct EarlyLoad {
    uint32_t stage;
    ValueId input;
    IndexMap coords;
    bool of_row;  // other rows load something else
  };
  const std::vector<EarlyLoad>& early_loads() const { return early_loads_; }
  /// Where values are kept: inputs with contiguous rows, of which every row is loaded whole; by
  /// number, with the stage that loads them.
  const std::map<size_t, uint32_t>& whole_rows() const { return whole_rows_; }
  /// Whether the text since open() loads elements one by one: in a chunk they wait for each other.
  bool loads_single() const { return loads_single_; }
  /// Definitions that stand before the kernel.
  const std::string& globals() const { return globals_; }
  const std::optional<Error>& error() const { return error_; }

 private:
  ValueCode compute(ValueId id, const IndexMap& coords, const std::string& key);
  CodeScope& home(Level level);
  ValueCode define(const std::string& key, DType dtype, Level level, const std::string& code);
  ValueCode kept_element(const KeptValue& kept);
  std::string new_chunk(DType dtype, CodeScope& chunk);
  /// The condition of a load: where it is false, zero is loaded; empty: always true.
  struct Condition {
    std::string text;
    Level level = Level::row;  // of the values in it
  };
  ValueCode load(ValueId id, const IndexMap& coords, const std::string& key,
                 const Condition& condition);
  ValueCode table(ValueId id, const IndexMap& coords, const std::string& key);
  ValueCode reduction(ValueId id, const IndexMap& coords);
  ValueCode gather(const Op& op, const IndexMap& coords);
  ValueCode checked_gather(const Op& op, const IndexMap& coords, const IndexMap& number);
  IndexMap table_coords(const Op& op, const IndexMap& coords, const std::string& row, Level level);
  llvm::SmallVector<ValueCode, 3> operands_of(const Op& op, const IndexMap& coords);
  std::string key_of(ValueId id, const IndexMap& coords) const;
  ValueCode elementwise(ValueId id, const IndexMap& coords, const std::string& key);
  ValueCode concat(ValueId id, const IndexMap& coords, const std::string& key);
  /// The code of an op's value from its operands' code; where is_rounded(), the caller rounds it.
  std::string formula(const Op& op, llvm::ArrayRef<ValueCode> operands) const;
  static bool is_rounded(const Op& op);
  /// The op computes a float32 formula and rounds it to 16 bits.
  bool rounds(const Op& op) const;
  /// The op is a cast whose result is its operand.
  bool is_free(const Op& op) const;
  /// Coordinates of a view's element in what it views.
  IndexMap view_coords(ValueId view, const IndexMap& coords) const;
  IndexMap operand_coords(const Op& op, ValueId operand, const IndexMap& coords) const;
  size_t input_number(ValueId id) const;

  /// A part of a concat for elements that may be of another part.
  struct Alternative {
    ValueId value;
    IndexMap coords;
    uint32_t position;  // the loop variable of the coordinates that counts from the part's begin
    std::string not_behind;  // true for elements of this part and of those before it
    // It is computed for elements that lie before or behind the part too.
    bool before = false, behind = false;
  };
  using Alternatives = llvm::SmallVector<Alternative, 4>;
  /// Formulas of a part without branches; more than any limit where it has other ops.
  int count_formulas(ValueId id) const;
  /// Whether all that two parts do is alike, but for the places that they load from.
  bool have_one_formula(ValueId a, ValueId b) const;
  /// The value of the part that the current element is of; `whole`: all elements of its chunk are.
  ValueCode choose(Alternatives parts, bool whole);
  ValueCode choose_load(llvm::ArrayRef<Alternative> parts, bool whole);
  ValueCode choose_code(DType dtype, const std::string& code);
  IndexMap clamped(const Alternative& part);

  IndexExpr loaded_row(const std::string& id, Dim extent, Level level);
  CheckedRow checked_row(const std::string& id, const SymExpr& extent, Level level);
  /// Where an element is stored, and when (empty: always).
  struct Place {
    IndexExpr at;
    std::string inside;
  };
  Place place(const Task& task, const IndexMap& coords);
  void add_to_runs(const Task& task, const std::string& guard);

  std::optional<ValueCode> find(ValueId id, const std::string& key, Level level);
  bool is_remade(const Op& op) const;
  const KeptValue* kept_here(const std::string& key, const CodeScope& scope, Level level,
                             DType dtype);
  std::string element_loop(const std::string& body) const;
  void note_equal(const Op& op, const IndexMap& coords, size_t label, const ValueCode& number,
                  const ValueCode& defined, const std::string& code);
  std::string elements() const;
  std::string fresh() { return fmt::format("v{}", next_++); }
  ValueCode give_up(std::string what);

  const GroupForm& form_;
  LoopSpace& space_;
  std::map<uint32_t, ValueCode> reductions_;
  std::map<std::string, KeptValue>* kept_ = nullptr;
  struct Computed {
    uint32_t pass;
    DType dtype;
  };
  std::map<std::string, Computed> computed_;

  CodeScope chunk_, element_;
  CodeScope* current_ = nullptr;
  std::string after_;  // stores of whole chunks
  std::string pairs_;  // statements behind each two elements
  /// A statement of the element's text that gives true for one element of a row at most. `chunk`:
  /// whether that element is in the chunk.
  struct EqualStatement {
    std::string chunk, statement, otherwise;
  };
  std::vector<EqualStatement> equals_;
  int instructions_ = 0;  // of an element's formulas, about
  std::vector<EarlyLoad> early_loads_;
  std::map<size_t, uint32_t> whole_rows_;
  uint32_t stage_ = 0, pass_ = 0;
  bool tail_ = false, single_ = false, loads_single_ = false;
  ValueId late_;

  uint32_t next_ = 0;
  std::map<uint32_t, std::string> tables_;
  std::string globals_;
  std::optional<Error> error_;
};

}  // namespace sinter
