// Groups without reductions: every chunk of 8 elements of every result is one thread's work, or
// every two where arithmetic bounds the kernel.
// Results of different sizes are stages of their own, one after the other in the order of threads,
// and so are results of one size that share no value: a thread that computed several of them would
// hold the chunks of all in its registers.
//
//   const long long item = blockIdx.x * 256ll + threadIdx.x;
//   const long long end0 = n0 * 512;
//   const long long end1 = end0 + n0 * 128;
//   if (item < end0) {
//     const int i = static_cast<int>(item * 8);
//     ...
//   } else if (item < end1) {

#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/EquivalenceClasses.h>
#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/STLExtras.h>

#include <algorithm>

#include "codegen/emission/emit_context.h"
#include "codegen/emission/emit_group.h"
#include "codegen/emission/emit_value.h"
#include "codegen/emission/kernel_body.h"
#include "ir/integers.h"
#include "ir/op_flops.h"

namespace sinter {
namespace {

constexpr int64_t kThreads = 256;
// Elements that a device has a thread for each: no more of them take their time, so that elements
// that must be loaded one by one need not share a thread, where they would wait for each other.
constexpr int64_t kFewElements = 1 << 17;
// The same for functions that reduce their argument, or work in float64: eight of them in one
// thread take eight times as long to run, and to compile (of cos and sin 0.28 s, one of each 0.06).
constexpr int64_t kFewLongFunctions = 1 << 21;

// Chunks of a thread where arithmetic bounds a kernel: the instructions that place a chunk, a tenth
// of all, are shared. One H100, tanh-GELU of bf16 [16384, 16384] by 1, 2 and 4 chunks: 395, 373 and
// 364 us; where memory is the bound SiLU(x) y takes 526, 531 and 539 us, tanh-GELU of f32 718, 741
// and 769. One H200, the gradient of a row's log-sum and label, bf16 [32768, 50264], 1 and 2: 2319
// and 1997 us.
constexpr int64_t kChunksOfArithmetic = 2;
// Bytes of an element, and instructions that take about as long as moving them.
constexpr int64_t kBytesOfArithmetic = 4, kInstructionsOfArithmetic = 20;

bool is_long(OpKind kind) {
  return kind == OpKind::sin || kind == OpKind::cos || kind == OpKind::pow;
}

/// Whether a stage's results need a long function.
bool has_long_function(const GroupForm& form, uint32_t stage) {
  llvm::SmallVector<ValueId> reached;
  for (const Task& task : form.tasks)
    if (task.stage == stage) reached.push_back(task.value);
  std::vector<bool> seen(form.graph.size(), false);
  while (!reached.empty()) {
    const ValueId id = reached.pop_back_val();
    if (seen[id.index]) continue;
    seen[id.index] = true;
    if (is_long(form.graph[id].kind)) return true;
    llvm::append_range(reached, form.graph[id].operands);
  }
  return false;
}

/// Whether arithmetic, not memory, bounds a kernel whose elements are all of one stage.
bool is_bound_by_arithmetic(const GroupForm& form) {
  if (form.stages.size() != 1) return false;
  const Graph& graph = form.graph;
  int64_t bits = 0;
  const auto add_bits = [&](ValueId id) {
    if (volume(graph[id].type.dims) == form.stages[0].width)
      bits += dtype_info(graph[id].type.dtype).bits;
  };
  for (ValueId id : graph.inputs) add_bits(id);
  for (ValueId id : graph.outputs) add_bits(id);
  int64_t count = 0;
  for (const Op& op : graph.ops())
    if (volume(op.type.dims) == form.stages[0].width) count += element_instructions(op);
  return bits <= 8 * kBytesOfArithmetic && count >= kInstructionsOfArithmetic;
}

/// Results that one thread computes at an index.
struct OwnStage {
  uint32_t stage;  // of the form
  llvm::SmallVector<const Task*, 4> tasks;
};

/// Splits the results of each stage into sets that share no value. A value of one element does not
/// join results of several. In the order of the form's stages, then of each set's first task.
std::vector<OwnStage> own_stages(const GroupForm& form) {
  std::vector<OwnStage> own;
  for (uint32_t s = 0; s < form.stages.size(); ++s) {
    llvm::EquivalenceClasses<uint32_t> joined;  // values, each task's with its result
    llvm::MapVector<uint32_t, OwnStage> apart;
    std::vector<bool> seen(form.graph.size(), false);
    const bool of_numbers = form.stages[s].width.is(1);
    const auto is_shared = [&](ValueId id) {
      const Op& op = form.graph[id];
      return op_class(op) != OpClass::generator && (of_numbers || !volume(op.type.dims).is(1));
    };
    for (const Task& task : form.tasks) {
      if (task.stage != s) continue;
      joined.insert(task.value.index);
      llvm::SmallVector<ValueId> reached{task.value};
      llvm::DenseSet<uint32_t> met;
      while (!reached.empty()) {
        const ValueId id = reached.pop_back_val();
        if (!met.insert(id.index).second) continue;
        if (is_shared(id)) joined.unionSets(task.value.index, id.index);
        // The operands of a value that was met before have been joined with it.
        if (seen[id.index] && is_shared(id)) continue;
        seen[id.index] = true;
        llvm::append_range(reached, form.graph[id].operands);
      }
    }
    for (const Task& task : form.tasks) {
      if (task.stage != s) continue;
      OwnStage& one = apart[joined.getLeaderValue(task.value.index)];
      one.stage = s;
      one.tasks.push_back(&task);
    }
    for (auto& [leader, one] : apart) own.push_back(std::move(one));
  }
  return own;
}

/// Chunks of a stage, as code.
std::string chunks_code(const LoopSpace& space, const SymExpr& width) {
  if (width.is_constant()) return fmt::format("{}", ceil_div(width.constant(), 8));
  if (const auto exact = width.divide_exactly(SymExpr(8))) return space.size_code(*exact, false);
  return fmt::format("({} + 7) / 8", space.size_code(width));
}

}  // namespace

Result<KernelBody> emit_elements(const EmitContext& context) {
  const BlockForm& block = context.block;
  const llvm::ArrayRef<Symbol> symbols = context.symbols;
  SINTER_LET(form, analyze_group(context.group, context.prefix_rank, symbols));
  const int64_t threads = std::max(kThreads, block.min_threads);
  LoopSpace space(form, symbols, context.parameters);
  ValueEmitter values(form, space);
  KernelBody body;
  SymExpr elements = 0;  // room for the last, incomplete chunks included
  std::string ends, branches, begin;
  bool few_elements = false;
  const std::vector<OwnStage> own = own_stages(form);
  for (size_t k = 0; k < own.size(); ++k) {
    const uint32_t s = own[k].stage;
    const Stage& stage = form.stages[s];
    if (stage.width.is(0)) continue;
    const bool whole = space.divides_by_chunk(stage.width);
    CodeScope branch;
    const auto write = [&](bool single) {
      branch = CodeScope();
      values.open(s, 0, branch, !whole && !single, single);
      for (const Task* task : own[k].tasks) values.store(*task, "");
    };
    write(false);
    const int64_t few = has_long_function(form, s) ? kFewLongFunctions
                        : values.loads_single()    ? kFewElements
                                                   : 0;
    const bool single = stage.width.upper_bound(symbols) <= few;
    few_elements |= single;
    if (single) write(true);
    if (values.error()) return tl::make_unexpected(*values.error());
    std::string text;
    if (!stage.axes.empty()) {
      text = fmt::format("const {0} i = static_cast<{0}>({1}{2});\n", space.index_type(stage),
                         begin.empty() ? "item" : fmt::format("(item - {})", begin),
                         single ? "" : " * 8");
      if (!whole && !single)
        text += fmt::format("const int valid = {0} - i < 8 ? static_cast<int>({0} - i) : 8;\n",
                            space.size_code(stage.width));
    }
    const std::string chunk = values.close();
    text += branch.text + chunk;

    const std::string end = fmt::format("end{}", k);
    ends +=
        fmt::format("const long long {} = {}{};\n", end, begin.empty() ? "" : begin + " + ",
                    single ? space.size_code(stage.width, false) : chunks_code(space, stage.width));
    branches += fmt::format("{}if (item < {}) {{\n{}}}", branches.empty() ? "" : " else ", end,
                            indented(text));
    begin = end;
    elements += single ? stage.width * SymExpr(8) : whole ? stage.width : stage.width + SymExpr(7);
    if (elements.is_constant()) elements = elements.constant() / 8 * 8;
  }
  body.globals = values.globals();
  const int64_t chunks = is_bound_by_arithmetic(form) && !few_elements ? kChunksOfArithmetic : 1;
  if (!branches.empty() && chunks == 1)
    body.text = fmt::format("const long long item = {} * {}ll + threadIdx.x;\n{}{}\n", block.number,
                            threads, ends, branches);
  else if (!branches.empty())
    body.text = fmt::format(
        "const long long first = {} * {}ll + threadIdx.x;\n{}"
        "#pragma unroll\nfor (int c = 0; c < {}; ++c) {{\n"
        "  const long long item = first + {} * c;\n{}\n}}\n",
        block.number, threads * chunks, ends, chunks, threads, indented(branches));
  body.launch.rows = 1;
  body.launch.threads = threads;
  if (elements.is_constant()) {
    body.launch.items_per_row = elements.constant() / 8;
    body.launch.items_per_block = threads * chunks;
  } else {
    body.launch.symbolic_items = elements;
    body.launch.items_per_block = threads * chunks * 8;
  }
  return body;
}

}  // namespace sinter
