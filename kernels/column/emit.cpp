// Groups with column reductions: a thread walks its lanes' rows for 8 neighbouring columns.
//
//   const int side = threadIdx.x % 8, run = threadIdx.x / 8;
//   const int i = 8 * (tile * 8 + side);                      the first column
//   for (int segment = rank; segment < 8; segment += blocks) {         once; without clusters, all
//   segments
//     ColumnRun<Sum, 4> run0;
//     for (int own = 0; own < 4; ++own) {
//       ColumnLane<Sum> lane0;
//       for (long long first = 8ll * ((segment * 32 + run) * 4 + own), ...; first += 8192)
//         for (int k = 0; k < 8; ++k) {
//           const long long row = first + k;
//           ... lane0.take(e, v3);
//         }
//       run0.add(own, lane0);
//     }
//     hand_over<Sum, 8, 32, 8>(run0.total, shared, totals + segment * 64);
//   }
//   ... the first block of the cluster:
//     float s0[8];
//     join_segments<Sum, 8>(s0, totals + 8 * side, 64);
//     ... results after the reductions
//
// kernels/column/schedule.h says how lanes are split; kernels/column/column.cuh combines them.
#include "codegen/emission/config_text.h"
#include "codegen/emission/emit_context.h"
#include "codegen/emission/emit_scalar.h"
#include "codegen/emission/emit_scope.h"
#include "codegen/emission/emit_value.h"
#include "codegen/emission/kernel_body.h"
#include "ir/integers.h"
#include "kernels/column/form.h"
#include "kernels/column/schedule.h"

namespace sinter {
namespace {

class ColumnKernel {
 public:
  ColumnKernel(const ColumnForm& form, llvm::ArrayRef<Symbol> symbols,
               llvm::ArrayRef<SymbolId> parameters, const ColumnConfig& config)
      : form_(form),
        config_(config),
        prologue_space_(form.prologue, symbols, parameters),
        epilogue_space_(form.epilogue, symbols, parameters),
        width_(form.prologue.stages[0].width),
        height_(volume(form.space.reduced())),
        slices_(volume(form.space.outer())),
        tail_(!prologue_space_.divides_by_chunk(width_)) {}

  Result<KernelBody> emit() {
    KernelBody body;
    body.includes =
        "#include \"kernels/column/column.cuh\"\n#include \"kernels/common/vector.cuh\"\n";
    body.launch = launch();
    body.launch.threads = config_.threads();
    body.resident_blocks = std::max<int64_t>(1, config_.resident_threads / config_.threads());
    // With a block of 512 threads that stores, the compiler else takes 64 registers for a second
    // one, and has one load under way at a time: on one H200 a concatenation with its sums of bf16
    // [32768, 2304] took 162 us, and takes 85.
    body.takes_registers = !form_.prologue.tasks.empty();
    if (width_.is(0) || slices_.is(0)) return body;
    ValueEmitter prologue(form_.prologue, prologue_space_),
        epilogue(form_.epilogue, epilogue_space_);
    body.text = preamble() + walk(prologue) + results(epilogue);
    for (const ValueEmitter* values : {&prologue, &epilogue}) {
      if (values->error()) return tl::make_unexpected(*values->error());
      body.globals += values->globals();
    }
    return body;
  }

 private:
  const Op& op(size_t number) const { return form_.prologue.graph[form_.reductions[number]]; }
  const char* combine(size_t number) const { return reduction_type(op(number)); }
  std::string size(const SymExpr& e, bool nested = true) const {
    return prologue_space_.size_code(e, nested);
  }

  Launch launch() const {
    Launch launch;
    launch.cluster = config_.segments;
    launch.rows = slices_;
    if (width_.is_constant()) {
      launch.items_per_row = ceil_div(width_.constant(), config_.tile());
      return launch;
    }
    // Each of several slices may end in a partial tile; surplus blocks do nothing.
    launch.symbolic_items = slices_.is(1) ? width_ : width_ + SymExpr(config_.tile() - 1);
    launch.items_per_block = config_.tile();
    return launch;
  }

  std::string preamble() const {
    const int64_t segments = config_.segments;
    std::string text = fmt::format(
        "__shared__ float shared[{}];\n__shared__ float totals[{}];\n"
        "const int side = threadIdx.x % {}, run = threadIdx.x / {};\n",
        config_.handed(), segments * config_.tile() * static_cast<int64_t>(form_.reductions.size()),
        config_.chunks, config_.chunks);
    text += segments == 1 ? "const long long tile = blockIdx.x;\n"
                          : "const int blocks = cluster_nctaid_x(), rank = blockIdx.x % blocks;\n"
                            "const long long tile = blockIdx.x / blocks;\n";
    std::string in_slice = "tile";
    std::string is_there = fmt::format("i < {}", size(width_));
    if (slices_.is(1)) {
      text += "constexpr long long slice = 0;\n";
    } else {
      const std::string tiles = width_.is_constant()
                                    ? fmt::format("{}", ceil_div(width_.constant(), config_.tile()))
                                    : fmt::format("(({0} + {1}) / {2} + ({0} == 0))", size(width_),
                                                  config_.tile() - 1, config_.tile());
      text += fmt::format("const long long slice = tile / {};\n", tiles);
      in_slice = fmt::format("tile % {}", tiles);
      is_there += fmt::format(" && slice < {}", size(slices_));
    }
    text +=
        fmt::format("const {0} i = static_cast<{0}>(8 * ({1} * {2} + side));\n",
                    prologue_space_.index_type(form_.prologue.stages[0]), in_slice, config_.chunks);
    text += fmt::format("const bool live = {};\n", is_there);
    if (tail_)
      text += fmt::format("const int valid = {0} - i < 8 ? static_cast<int>({0} - i) : 8;\n",
                          size(width_));
    return text + (segments == 1 ? "" : "barrier_cluster_arrive_relaxed();\n");
  }

  /// The operand of reduction `number`, before casts that change no element.
  ValueId summed(size_t number) const {
    const Graph& graph = form_.prologue.graph;
    ValueId id = op(number).operands[0];
    while (graph[id].kind == OpKind::cast &&
           is_free_cast(graph[graph[id].operands[0]].type.dtype, graph[id].type.dtype))
      id = graph[id].operands[0];
    return id;
  }

  /// Whether nothing but sums of the kernel reads the value.
  bool is_read_by_sums(ValueId id) const {
    return llvm::all_of(form_.prologue.graph.ops(), [&](const Op& user) {
      if (!llvm::is_contained(user.operands, id)) return true;
      if (op_class(user) == OpClass::reduce) return true;
      const auto number = static_cast<uint32_t>(&user - form_.prologue.graph.ops().data());
      return user.kind == OpKind::cast &&
             is_free_cast(form_.prologue.graph[id].type.dtype, user.type.dtype) &&
             is_read_by_sums(ValueId{number}) && !is_stored(ValueId{number});
    });
  }
  bool is_stored(ValueId id) const {
    return llvm::any_of(form_.prologue.tasks, [&](const Task& task) { return task.value == id; });
  }

  /// The text of a thread at one row: loads, sums, results that are stored there.
  std::string at_row(ValueEmitter& values) {
    CodeScope row;
    values.open(0, 0, row, tail_);
    std::map<ValueId, std::string> rounded;  // stored values, by what they are
    for (const Task& task : form_.prologue.tasks) {
      const std::string chunk = values.store(task, "", is_read_by_sums(task.value));
      if (!chunk.empty()) rounded[task.value] = chunk;
    }
    for (size_t n = 0; n < form_.reductions.size(); ++n) {
      const auto at = rounded.find(summed(n));
      if (at == rounded.end())
        values.statement(fmt::format("lane{}.take(e, {});", n, values.element(op(n).operands[0])));
      else
        values.statement_of_pair(
            fmt::format("lane{}.take_pair(p, {}{});", n, at->second, tail_ ? ", valid" : ""));
    }
    const std::string chunk = values.close();
    return fmt::format("const long long row = {}first + k;\n",
                       slices_.is(1) ? "" : fmt::format("slice * {} + ", size(height_))) +
           prologue_space_.row_axes() + row.text + chunk;
  }

  /// The rows of a lane: whole chunks of 8, whose loads are under way together, and the last.
  std::string lane(ValueEmitter& values) {
    const std::string body = indented(at_row(values));
    const std::string whole = "#pragma unroll\nfor (int k = 0; k < 8; ++k) {\n" + body + "}\n";
    const bool exact = prologue_space_.divides_by_chunk(height_);
    const std::string end =
        height_.is_constant() ? fmt::format("hidden({}ll)", height_.constant()) : size(height_);
    const std::string text = exact ? whole
                                   : "if (first + 8 <= end) {\n" + indented(whole) +
                                         "} else {\n  for (int k = 0; first + k < end; ++k) {\n" +
                                         indented(body) + "  }\n}\n";
    const std::string own = config_.lanes == 1 ? "" : fmt::format(" * {} + own", config_.lanes);
    const std::string segment =
        config_.segments == 1 ? "run" : fmt::format("(segment * {} + run)", config_.runs);
    return fmt::format(
        "for (long long first = 8ll * ({}{}), end = {}; first < end; first += {}) "
        "{{\n{}}}\n",
        segment, own, end, 8 * form_.lanes, indented(text));
  }

  std::string walk(ValueEmitter& values) {
    std::string lanes, runs, adds, hands;
    for (size_t n = 0; n < form_.reductions.size(); ++n) {
      runs += fmt::format("ColumnRun<{}, {}> run{};\n", combine(n), config_.lanes, n);
      lanes += fmt::format("ColumnLane<{}> lane{};\n", combine(n), n);
      adds += fmt::format("run{0}.add(own, lane{0});\n", n);
      hands += fmt::format("hand_over<{}, {}, {}, {}>(run{}.total, shared, totals{});\n",
                           combine(n), config_.chunks, config_.runs, config_.segments, n, place(n));
    }
    const std::string walked =
        runs + "if (live) {\n" +
        indented(fmt::format("#pragma unroll 1\nfor (int own = 0; own < {}; ++own) {{\n{}}}\n",
                             config_.lanes, indented(lanes + lane(values) + adds))) +
        "}\n";
    if (config_.segments == 1) return walked + hands;
    // The first block's memory may be written when that block has begun.
    return fmt::format("for (int segment = rank; segment < {}; segment += blocks) {{\n{}}}\n",
                       config_.segments,
                       indented(walked + "if (segment == rank) barrier_cluster_wait();\n" + hands));
  }

  /// Where a reduction's values of the segment lie after `totals`.
  std::string place(size_t number) const {
    const int64_t before = static_cast<int64_t>(number) * config_.segments * config_.tile();
    std::string text = before == 0 ? "" : fmt::format(" + {}", before);
    if (config_.segments > 1) text += fmt::format(" + segment * {}", config_.tile());
    return text;
  }

  std::string results(ValueEmitter& values) {
    CodeScope row;
    values.open(0, 0, row, tail_);
    std::string sums;
    for (size_t n = 0; n < form_.reductions.size(); ++n) {
      const std::string name = fmt::format("s{}", n);
      const int64_t before = static_cast<int64_t>(n) * config_.segments * config_.tile();
      sums += fmt::format("{} {}[8];\n", register_type(op(n).type.dtype), name);
      sums += call_text(
          fmt::format("join_segments<{}, {}>", combine(n), config_.segments),
          {name, fmt::format("totals + {} + 8 * side", before), std::to_string(config_.tile())});
      const ValueCode sum = ValueCode::in_array(name);
      const DType dtype = op(n).type.dtype;
      if (is_narrow(dtype))
        sums += fmt::format("#pragma unroll\nfor (int e = 0; e < 8; ++e) {} = {};\n", sum.text,
                            rounded_code(sum.text, dtype));
      values.define_reduction(form_.reductions[n], sum);
    }
    for (const Task& task : form_.epilogue.tasks) values.store(task, "");
    const std::string chunk = values.close();
    std::string place = epilogue_space_.row_axes();
    if (epilogue_space_.uses_row()) place = "const long long row = slice;\n" + place;
    std::string text = "__syncthreads();\n";
    if (config_.segments > 1) text += "barrier_cluster_arrive();\nbarrier_cluster_wait();\n";
    return text + fmt::format("if (live && run == 0{}) {{\n{}}}\n",
                              config_.segments > 1 ? " && rank == 0" : "",
                              indented(place + sums + row.text + chunk));
  }

  const ColumnForm& form_;
  const ColumnConfig& config_;
  LoopSpace prologue_space_, epilogue_space_;
  SymExpr width_, height_, slices_;
  bool tail_;
};

}  // namespace

Result<KernelBody> emit_columns(const EmitContext& context) {
  const llvm::ArrayRef<Symbol> symbols = context.symbols;
  const llvm::ArrayRef<SymbolId> parameters = context.parameters;
  const DeviceDescription& device = context.device;
  SINTER_LET(form, column_form(context.group, symbols));
  const Graph& graph = form.prologue.graph;
  int64_t bits = 16, all_bits = 0;  // of operands that are there for every element: widest, sum
  for (ValueId id : graph.inputs) {
    if (volume(graph[id].type.dims) != volume(form.space.dims)) continue;
    bits = std::max<int64_t>(bits, dtype_info(graph[id].type.dtype).bits);
    all_bits += dtype_info(graph[id].type.dtype).bits;
  }
  const ColumnProblem problem{.outer = volume(form.space.outer()),
                              .width = volume(form.space.inner()),
                              .lanes = form.lanes,
                              .element_bytes = bits / 8,
                              .operand_bytes = all_bits / 8,
                              .reductions = static_cast<int64_t>(form.reductions.size()),
                              .stores_elements = !form.prologue.tasks.empty()};
  const auto config = schedule_columns(problem, symbols, device);
  if (!config)
    return fail("no configuration of a column kernel fits the device", {},
                "compute the ops in separate kernels", ExitCode::internal_error);
  return ColumnKernel(form, symbols, parameters, *config).emit();
}

}  // namespace sinter
