#include "codegen/emission/emit_value.h"

#include <utility>

#include "codegen/emission/config_text.h"
#include "codegen/emission/emit_scalar.h"
#include "ir/cheap_ops.h"
#include "ir/fault.h"
#include "ir/row_numbers.h"

namespace sinter {
namespace {

// Branches are emitted once for each place that reads them; a group whose text would exceed this is
// no kernel.
constexpr uint32_t kMaxValues = 20000;

// Where a row has this number of elements, few warps have the one that a label names.
constexpr int64_t kLongRow = 1024;
// Instructions of an element whose text may stand twice, and of an op that is not cheap.
constexpr int kShortText = 16, kLongFormula = 16;

/// Where a thread keeps its chunks of a value; a chunk is an array of elements.
std::string kept_array(const KeptValue& kept) { return fmt::format("k{}[j]", kept.number); }

/// The coordinates of a read that lands one element too early.
IndexMap shifted(IndexMap coords) {
  for (IndexExpr& e : coords)
    if (e.constant().is_constant() && e.constant().constant() > 0 &&
        fault(Fault::wrong_index_map)) {
      e += IndexExpr(SymExpr(-1));
      break;
    }
  return coords;
}

/// Operand coordinates with the operand's axes aligned at the first axis instead of the last.
IndexMap misaligned(DimsRef from, DimsRef to, const IndexMap& coords) {
  const bool possible =
      from.size() < to.size() && !from.empty() && to.take_front(from.size()) == from;
  if (possible && fault(Fault::wrong_axis_broadcast))
    return broadcast_coords(from, from, IndexMap(coords.begin(), coords.begin() + from.size()));
  return broadcast_coords(from, to, coords);
}

}  // namespace

ValueCode ValueEmitter::give_up(std::string what) {
  if (!error_)
    error_ =
        Error{std::move(what), {}, "compute the ops in separate kernels", ExitCode::internal_error};
  return {"0"};
}

void ValueEmitter::open(uint32_t stage, uint32_t pass, CodeScope& row, bool tail, bool single,
                        ValueId late) {
  stage_ = stage;
  pass_ = pass;
  tail_ = tail;
  single_ = single;
  late_ = late;
  loads_single_ = false;
  after_.clear();
  pairs_.clear();
  equals_.clear();
  instructions_ = 0;
  space_.enter(stage);
  chunk_ = CodeScope{.parent = &row, .level = Level::chunk};
  element_ = CodeScope{.parent = &chunk_, .level = Level::element};
  current_ = form_.stages[stage].axes.empty() ? &row : &element_;
}

std::string ValueEmitter::take_early() {
  return space_.take_chunk_axes() + "constexpr int e = 0;\n" + std::exchange(chunk_.text, {});
}

std::string ValueEmitter::close() {
  const std::string elements = late_.valid() ? element_.text
                               : single_     ? "constexpr int e = 0;\n" + element_.text
                                             : this->elements();
  return space_.take_chunk_axes() + chunk_.text + elements + after_;
}

/// The loop over a chunk's elements. A label's element is in few chunks: the others have a short
/// loop without the conditions on it.
std::string ValueEmitter::elements() const {
  std::string text = element_.text, any;
  for (const EqualStatement& equal : equals_) {
    const size_t at = text.find(equal.statement);
    if (at == std::string::npos) continue;
    text.replace(at, equal.statement.size(), equal.otherwise);
    any += (any.empty() ? "" : " || ") + equal.chunk;
  }
  if (any.empty() || instructions_ > kShortText) return element_loop(element_.text);
  return fmt::format("if ({}) {{\n{}}} else {{\n{}}}\n", any, indented(element_loop(element_.text)),
                     indented(element_loop(text)));
}

std::string ValueEmitter::element_loop(const std::string& body) const {
  if (body.empty()) return {};
  const std::string element =
      indented(tail_ ? "if (e < valid) {\n" + indented(body) + "}\n" : body);
  if (pairs_.empty()) return "#pragma unroll\nfor (int e = 0; e < 8; ++e) {\n" + element + "}\n";
  return "#pragma unroll\nfor (int p = 0; p < 8; p += 2) {\n" +
         indented("#pragma unroll\nfor (int e = p; e < p + 2; ++e) {\n" + element + "}\n" +
                  pairs_) +
         "}\n";
}

ValueCode ValueEmitter::value(ValueId id, const IndexMap& coords) {
  const Op& op = form_.graph[id];
  if (op_class(op) == OpClass::view) return value(op.operands[0], view_coords(id, coords));
  if (op.kind == OpKind::constant)
    return {literal_code(op.attrs.get<Number>(AttrName::value), op.type.dtype)};
  if (op_class(op) == OpClass::reduce) return reduction(id, coords);
  const std::string key = key_of(id, coords);
  if (auto known = find(id, key, space_.level(coords))) return *known;
  if (error_ || next_ > kMaxValues) return give_up("a group needs too much code");
  return compute(id, coords, key);
}

bool ValueEmitter::rounds(const Op& op) const {
  return is_narrow(op.type.dtype) &&
         (op_class(op) == OpClass::elementwise ||
          (op.kind == OpKind::cast && form_.graph[op.operands[0]].type.dtype == DType::f32));
}

ValueCode ValueEmitter::before_rounding(ValueId id, const IndexMap& coords, bool read_later) {
  const Op& op = form_.graph[id];
  const bool alone = read_later || llvm::none_of(form_.graph.ops(), [&](const Op& user) {
                       return llvm::is_contained(user.operands, id);
                     });
  if (!rounds(op) || !alone || error_ || find(id, key_of(id, coords), space_.level(coords)))
    return value(id, coords);
  const llvm::SmallVector<ValueCode, 3> operands = operands_of(op, coords);
  return op.kind == OpKind::cast ? operands[0] : ValueCode{formula(op, operands)};
}

std::string ValueEmitter::key_of(ValueId id, const IndexMap& coords) const {
  std::string key = fmt::format("{}:", id.index);
  for (const IndexExpr& e : coords) key += space_.key(e) + ';';
  return key;
}

/// A value that is cheaper to make again than to hold in registers: a position; a float32 value
/// that one addition or multiplication makes of a packed value and of scalars of the row; a truth
/// value that one op makes of a position and of such scalars.
bool ValueEmitter::is_remade(const Op& op) const {
  if (op.kind == OpKind::iota) return true;
  const bool is_sum = op.kind == OpKind::add || op.kind == OpKind::sub || op.kind == OpKind::mul;
  if (op.type.dtype == DType::f32
          ? !is_sum
          : op.type.dtype != DType::i1 || op_class(op) != OpClass::elementwise)
    return false;
  const size_t inner = op.type.rank() - std::min(op.type.rank(), form_.prefix.size());
  int packed = 0, positions = 0, others = 0;
  for (ValueId id : op.operands) {
    while (form_.graph[id].kind == OpKind::cast || op_class(form_.graph[id]) == OpClass::view)
      id = form_.graph[id].operands[0];
    const Op& operand = form_.graph[id];
    const DimsRef dims = operand.type.dims;
    if (operand.kind == OpKind::iota)
      ++positions;
    else if (!volume(dims.take_back(std::min(inner, dims.size()))).is(1))
      ++(is_narrow(operand.type.dtype) ? packed : others);
  }
  return op.type.dtype == DType::f32 ? packed == 1 && positions == 0 && others == 0
                                     : positions == 1 && packed == 0 && others == 0;
}

std::optional<ValueCode> ValueEmitter::find(ValueId id, const std::string& key, Level level) {
  if (const ValueCode* known = current_->find(&CodeScope::values, key)) return *known;
  if (!kept_ || level != Level::element || is_remade(form_.graph[id])) return {};
  const auto computed = computed_.find(key);
  if (computed == computed_.end() || computed->second.pass == pass_) return {};
  const auto [at, added] =
      kept_->try_emplace(key, KeptValue{static_cast<uint32_t>(kept_->size()), stage_,
                                        computed->second.pass, pass_, computed->second.dtype});
  at->second.last = std::max(at->second.last, pass_);
  return ValueCode::in_array(kept_array(at->second));
}

/// Notes that the scope computes an element value, and tells whether a later pass wants it.
const KeptValue* ValueEmitter::kept_here(const std::string& key, const CodeScope& scope,
                                         Level level, DType dtype) {
  if (!kept_ || level != Level::element || (&scope != &chunk_ && &scope != &element_))
    return nullptr;
  computed_.try_emplace(key, Computed{pass_, dtype});
  const auto at = kept_->find(key);
  return at != kept_->end() && at->second.first == pass_ ? &at->second : nullptr;
}

/// Where a value of `level` stands. Beside a late input it stands no further out than the loads
/// that it may depend on.
CodeScope& ValueEmitter::home(Level level) {
  return current_->place(late_.valid() ? std::max(level, Level::chunk) : level);
}

ValueCode ValueEmitter::define(const std::string& key, DType dtype, Level level,
                               const std::string& code) {
  CodeScope& scope = home(level);
  ValueCode defined;
  if (const KeptValue* kept = kept_here(key, scope, level, dtype)) {
    defined = kept_element(*kept);
    scope.line("{} = {};", defined.text, code);
  } else {
    defined = {fresh()};
    scope.line("const {} {} = {};", register_type(dtype), defined.text, code);
  }
  return scope.values[key] = defined;
}

/// Where the elements of a kept value are written, one by one.
ValueCode ValueEmitter::kept_element(const KeptValue& kept) {
  if (!is_narrow(kept.dtype)) return ValueCode::in_array(kept_array(kept));
  const std::string chunk = fresh();  // packed when it is complete
  chunk_.line("float {}[8]{};", chunk, tail_ ? " = {}" : "");
  after_ += fmt::format("pack_chunk({}, {});\n", kept_array(kept), chunk);
  return ValueCode::in_array(chunk);
}

/// A new array for the elements of a chunk.
std::string ValueEmitter::new_chunk(DType dtype, CodeScope& chunk) {
  std::string name = fresh();
  chunk.line("{} {}[8];", register_type(dtype), name);
  return name;
}

ValueCode ValueEmitter::compute(ValueId id, const IndexMap& coords, const std::string& key) {
  const Op& op = form_.graph[id];
  switch (op.kind) {
    case OpKind::input:
      return load(id, coords, key, {});
    case OpKind::literal:
      return table(id, coords, key);
    case OpKind::embedding:
    case OpKind::gather:
      return gather(op, coords);
    case OpKind::concat:
      return concat(id, coords, key);
    case OpKind::iota: {
      const IndexExpr& e = coords[static_cast<size_t>(op.attrs.get<int64_t>(AttrName::axis))];
      return define(key, op.type.dtype, space_.level(coords),
                    fmt::format("static_cast<int>({})", space_.code(e)));
    }
    case OpKind::copy:
      return value(op.operands[0], coords);
    default:
      return elementwise(id, coords, key);
  }
}

llvm::SmallVector<ValueCode, 3> ValueEmitter::operands_of(const Op& op, const IndexMap& coords) {
  llvm::SmallVector<ValueCode, 3> operands;
  for (ValueId operand : op.operands)
    operands.push_back(value(operand, operand_coords(op, operand, coords)));
  return operands;
}

IndexMap ValueEmitter::view_coords(ValueId view, const IndexMap& coords) const {
  return shifted(through_view(form_.graph, view, coords, space_.extents()));
}

IndexMap ValueEmitter::operand_coords(const Op& op, ValueId operand, const IndexMap& coords) const {
  return misaligned(form_.graph[operand].type.dims, op.type.dims, coords);
}

size_t ValueEmitter::input_number(ValueId id) const {
  return static_cast<size_t>(llvm::find(form_.graph.inputs, id) - form_.graph.inputs.begin());
}

std::string ValueEmitter::formula(const Op& op, llvm::ArrayRef<ValueCode> operands) const {
  const auto texts = llvm::to_vector(
      llvm::map_range(operands, [](const ValueCode& operand) { return operand.text; }));
  switch (op.kind) {
    case OpKind::cast:
      return cast_code(texts[0], form_.graph[op.operands[0]].type.dtype, op.type.dtype);
    case OpKind::where:
      return fmt::format("{} ? {} : {}", texts[0], texts[1], texts[2]);
    default:
      return formula_code(op.kind, texts);
  }
}

bool ValueEmitter::is_free(const Op& op) const {
  return op.kind == OpKind::cast &&
         is_free_cast(form_.graph[op.operands[0]].type.dtype, op.type.dtype);
}

/// A cast rounds itself, and the values that `where` chooses among are rounded.
bool ValueEmitter::is_rounded(const Op& op) {
  return op.kind != OpKind::cast && op.kind != OpKind::where;
}

ValueCode ValueEmitter::elementwise(ValueId id, const IndexMap& coords, const std::string& key) {
  const Op& op = form_.graph[id];
  const llvm::SmallVector<ValueCode, 3> operands = operands_of(op, coords);
  if (is_free(op)) return operands[0];
  std::string code = formula(op, operands);
  if (is_rounded(op)) code = rounded_code(std::move(code), op.type.dtype);
  const Level level = space_.level(coords);
  const ValueCode defined = define(key, op.type.dtype, level, code);
  if (level == Level::element) instructions_ += is_cheap(op) ? 1 : kLongFormula;
  if (op.kind == OpKind::equal && level == Level::element)
    for (size_t label : {size_t{0}, size_t{1}})
      note_equal(op, coords, label, operands[label], defined, code);
  return defined;
}

/// Notes a comparison of the positions along a chunk with a number that the chunk's elements share,
/// operand `label`.
void ValueEmitter::note_equal(const Op& op, const IndexMap& coords, size_t label,
                              const ValueCode& number, const ValueCode& defined,
                              const std::string& code) {
  if (single_ || late_.valid() || current_ != &element_ || !defined.array.empty() ||
      form_.stages[stage_].width.upper_bound(space_.symbols()) < kLongRow ||
      space_.level(operand_coords(op, op.operands[label], coords)) == Level::element)
    return;
  ValueId positions = op.operands[1 - label];
  IndexMap at = operand_coords(op, positions, coords);
  for (; op_class(form_.graph[positions]) == OpClass::view;
       positions = form_.graph[positions].operands[0])
    at = view_coords(positions, at);
  const Op& iota = form_.graph[positions];
  if (iota.kind != OpKind::iota || iota.type.dtype != DType::i32) return;
  const IndexExpr& position = at[static_cast<size_t>(iota.attrs.get<int64_t>(AttrName::axis))];
  if (!space_.contiguous(position, 1)) return;
  equals_.push_back({fmt::format("static_cast<unsigned>({}) - static_cast<unsigned>({}) < 8u",
                                 number.text, space_.code(position, true)),
                     fmt::format("const bool {} = {};\n", defined.text, code),
                     fmt::format("constexpr bool {} = false;\n", defined.text)});
}

std::string ValueEmitter::collected(ValueId id, std::string_view absent) {
  const std::string chunk = fresh();
  chunk_.line("{} {}[8]{};", register_type(form_.graph[id].type.dtype), chunk,
              tail_ ? " = " + braced(std::vector<std::string>(8, std::string(absent))) : "");
  statement(fmt::format("{}[e] = {};", chunk, element(id)));
  return chunk;
}

ValueCode ValueEmitter::load(ValueId id, const IndexMap& coords, const std::string& key,
                             const Condition& condition) {
  const TensorType& type = form_.graph[id].type;
  const IndexExpr at = linearize(type.dims, coords);
  // The row of a table of one row is known before its number is.
  const Level level = std::max(space_.level(coords), condition.level);
  const size_t input = input_number(id);
  CodeScope& chunk = current_->place(Level::chunk);
  if (level == Level::element && chunk.level == Level::chunk && !single_ &&
      condition.level <= Level::chunk && space_.contiguous(at, chunk_alignment(type.dtype))) {
    const KeptValue* kept = kept_here(key, chunk, Level::element, type.dtype);
    const std::string name = kept ? kept_array(*kept) : new_chunk(type.dtype, chunk);
    chunk.values[key] = ValueCode::in_array(name);
    // Loaded for every chunk of every row: in no branch, such as a part of a concat.
    if (kept_ && &chunk == &chunk_ && condition.text.empty()) {
      if (pass_ > form_.first_pass(stage_) && space_.fixed(at))
        early_loads_.push_back({stage_, id, coords, space_.of_row(at)});
      if (space_.key(at) == space_.key(space_.flat())) whole_rows_.emplace(input, stage_);
    }
    std::string valid = tail_ ? ", valid" : "";
    if (!condition.text.empty())
      valid = fmt::format(", {} ? {} : 0", condition.text, tail_ ? "valid" : "8");
    chunk.line("load_chunk({}, x{} + {}{});", name, input, space_.code(at, true), valid);
    return ValueCode::in_array(name);
  }
  loads_single_ |= level == Level::element;
  const bool early = late_.valid() && id != late_ && space_.fixed(at) && condition.text.empty();
  std::string code = fmt::format("load(x{} + {})", input, space_.code(at));
  if (!condition.text.empty()) code = fmt::format("{} ? {} : 0", condition.text, code);
  return define(key, type.dtype, early ? Level::chunk : level, code);
}

ValueCode ValueEmitter::table(ValueId id, const IndexMap& coords, const std::string& key) {
  const Op& op = form_.graph[id];
  std::string& name = tables_[id.index];
  if (name.empty()) {
    name = fmt::format("{}{}", form_.table_name, tables_.size() - 1);
    std::string elements;
    for (const Number& value : op.attrs.get<std::vector<Number>>(AttrName::values))
      elements += (elements.empty() ? "" : ", ") + literal_code(value, op.type.dtype);
    globals_ += fmt::format("__device__ const {} {}[] = {{{}}};\n", register_type(op.type.dtype),
                            name, elements.empty() ? "0" : elements);
  }
  return define(key, op.type.dtype, space_.level(coords),
                fmt::format("{}[{}]", name, space_.code(linearize(op.type.dims, coords))));
}

ValueCode ValueEmitter::reduction(ValueId id, const IndexMap& coords) {
  for (uint32_t k = 0; k < form_.prefix.size(); ++k)
    if (!(space_.lower(coords[k]) == space_.lower(IndexExpr::variable(k))))
      return give_up("a reduction is read at another row than its own");
  const auto at = reductions_.find(id.index);
  SINTER_CHECK(at != reductions_.end(), "a reduction is read before it is complete");
  // One result for each column: the thread has the results of its own chunk.
  const DimsRef dims = form_.graph[id].type.dims;
  if (!at->second.array.empty() &&
      space_.key(linearize(dims, coords)) != space_.key(linearize(dims, space_.identity(dims))))
    return give_up("a reduction is read at another column than its own");
  return at->second;
}

/// The loop variable that stands for the loaded row `id`.
IndexExpr ValueEmitter::loaded_row(const std::string& id, Dim extent, Level level) {
  CodeScope& scope = current_->place(level);
  if (const uint32_t* axis = scope.find(&CodeScope::row_axes, id))
    return IndexExpr::variable(*axis);
  const uint32_t axis = space_.add_loaded(id, extent, level);
  scope.row_axes[id] = axis;
  return IndexExpr::variable(axis);
}

CheckedRow ValueEmitter::checked_row(const std::string& id, const SymExpr& extent, Level level) {
  CodeScope& scope = home(level);
  const std::string rows = space_.size_code(extent);
  const std::string key = fmt::format("{} of {}", id, rows);
  if (const CheckedRow* known = scope.find(&CodeScope::checked_rows, key)) return *known;
  const std::string inside = fresh();
  scope.line("const bool {} = 0 <= {} && {} < {};", inside, id, id, rows);
  const std::string row = fresh();
  scope.line("const int {} = {} ? {} : 0;", row, inside, id);
  return scope.checked_rows[key] = {inside, row};
}

/// `coords` of the result of a gather, in its table: along one axis the loaded row. The row
/// number of an embedding counts all axes of its table but the last.
IndexMap ValueEmitter::table_coords(const Op& op, const IndexMap& coords, const std::string& row,
                                    Level level) {
  const TensorType& table = form_.graph[op.operands[0]].type;
  if (op.kind == OpKind::embedding) {
    const DimsRef rows = DimsRef(table.dims).drop_back();
    const Dim extent =
        rows.size() == 1
            ? rows[0]
            : Dim(std::min<int64_t>(INT32_MAX, volume(rows).upper_bound(space_.symbols())));
    IndexMap at = delinearize(rows, loaded_row(row, extent, level), space_.extents());
    at.push_back(coords.back());
    return at;
  }
  IndexMap at = coords;
  const size_t axis = named_axis(op, table);
  at[axis] = loaded_row(row, table.dims[axis], level);
  return at;
}

/// Zero where the row is not there: a load has that condition, what is computed is chosen by it.
ValueCode ValueEmitter::checked_gather(const Op& op, const IndexMap& coords,
                                       const IndexMap& number) {
  const Level level = space_.level(number);
  ValueId table = op.operands[0];
  const CheckedRow row =
      checked_row(value(op.operands[1], number).text, *named_rows(form_.graph, op, 1), level);
  IndexMap at = table_coords(op, coords, row.row, level);
  for (; op_class(form_.graph[table]) == OpClass::view; table = form_.graph[table].operands[0])
    at = through_view(form_.graph, table, at, space_.extents());
  if (form_.graph[table].kind != OpKind::input)
    return {fmt::format("({} ? {} : 0)", row.inside, value(table, at).text)};
  // Rows with different numbers may be at the same place: a table's only row.
  const std::string key =
      fmt::format("{} by {}", key_of(table, at), key_of(op.operands[1], number));
  if (auto known = find(table, key, std::max(space_.level(at), level))) return *known;
  return load(table, at, key, {row.inside, level});
}

ValueCode ValueEmitter::gather(const Op& op, const IndexMap& coords) {
  const IndexMap number = number_coords(op, coords);
  if (is_checked(op)) return checked_gather(op, coords, number);
  const std::string row = value(op.operands[1], number).text;
  return value(op.operands[0], table_coords(op, coords, row, space_.level(number)));
}

}  // namespace sinter
