// Groups with reductions: a row is walked in passes. A pass computes the reductions whose operands
// need only what earlier passes reduced, and writes the results that are complete by then.
//
//   const int thread = threadIdx.x;
//   const long long row = blockIdx.x;
//   float k0[1][8];
//   Lanes<Sum, 1> lanes0;
//   for (int j = 0; j < 1; ++j) {           chunks of this thread, unrolled
//     const int i = 8 * (thread + 512 * j);
//     ... lanes0.take(0, v3);
//   }
//   const float s0 = reduce_row<512>(lanes0, shared);
//   for (...) ...                           the next pass
//
// A row that is too long for one block has the blocks of a cluster: `thread` counts through them.
//
//   barrier_cluster_arrive_relaxed();
//   const int thread = blockIdx.x % 2 * 256 + threadIdx.x;
//   __builtin_assume(thread >= 0 && thread < 512);  conditions on elements of whole chunks vanish
//   const long long row = blockIdx.x / 2;
//   ...
//   barrier_cluster_wait();                     before the first reduction: all blocks have begun
//   const float s0 = reduce_row<512, 2>(lanes0, shared);
//
// On chip, element values that a later pass needs stay in registers (k0), and what only later
// passes load (weights) is loaded in the first where registers allow. In the looped form every pass
// computes its values again from the inputs.
#include "codegen/emission/emit_row_kernel.h"

#include <algorithm>
#include <utility>

#include "codegen/emission/emit_scalar.h"
#include "ir/scalar_math.h"

namespace sinter {

namespace {

std::string joined(const std::string& a, const std::string& b) {
  return a.empty() ? b : a + " && " + b;
}

}  // namespace

void RowKernel::open_reductions(llvm::ArrayRef<Task> tasks) {
  for (const Task& task : tasks) {
    if (task.output >= 0) continue;
    const auto number = static_cast<uint32_t>(numbers_.size());
    numbers_[task.value.index] = number;
    if (stage_->axes.empty()) continue;
    if (is_max_of_pairs(task))
      row_.line("PairsOfMax pairs{};", number);
    else
      row_.line("Lanes<{}, {}> lanes{};", combine(task), lanes_per_thread(), number);
  }
}

/// A maximum of values of bf16 takes two elements in an instruction.
bool RowKernel::is_max_of_pairs(const Task& task) const {
  return op(task).kind == OpKind::reduce_max && is_float(op(task).type.dtype) &&
         has_values_of_bf16(op(task).operands[0]);
}

bool RowKernel::has_values_of_bf16(ValueId id) const {
  const Op& op = form_.graph[id];
  if (op.type.dtype == DType::bf16) return true;
  if (op.type.dtype != DType::f32) return false;
  if (op.kind == OpKind::constant)
    return (math::float_bits(op.attrs.get<Number>(AttrName::value).to_float(DType::f32)) &
            0xffffu) == 0;
  if (op.kind == OpKind::where)
    return has_values_of_bf16(op.operands[1]) && has_values_of_bf16(op.operands[2]);
  const bool same = op.kind == OpKind::cast || op.kind == OpKind::copy ||
                    (op_class(op) == OpClass::view && op.operands.size() == 1);
  return same && has_values_of_bf16(op.operands[0]);
}

void RowKernel::take(const Task& task, const std::string& lane) {
  if (is_max_of_pairs(task)) {
    const std::string chunk = values_.collected(op(task).operands[0], "-math::infinity()");
    values_.statement_of_chunk(fmt::format("pairs{}.take({});", numbers_[task.value.index], chunk));
    return;
  }
  const std::string element = values_.element(op(task).operands[0]);
  values_.statement(
      fmt::format("lanes{}.take({}, {});", numbers_[task.value.index], lane, element));
}

void RowKernel::close_reductions(llvm::ArrayRef<Task> tasks) {
  for (const Task& task : tasks) {
    if (task.output >= 0) continue;
    const uint32_t number = numbers_[task.value.index];
    std::string result = fmt::format("{}::identity()", combine(task));
    if (stage_->axes.empty()) {
      if (!stage_->width.is(0))
        result = fmt::format("{}::combine({}, {})", combine(task), result,
                             values_.element(op(task).operands[0]));
    } else {
      std::string shared = "nullptr";
      if (owners() > 32) {
        shared = shared_floats_ == 0 ? "shared" : fmt::format("shared + {}", shared_floats_);
        shared_floats_ += std::max(owners(), config_.threads) / 32 * lanes_per_thread();
      }
      std::string threads = fmt::format("{}", owners());
      if (owners() > config_.threads) {
        threads += fmt::format(", {}", config_.blocks);
        if (!std::exchange(meets_in_cluster_, true)) row_.line("barrier_cluster_wait();");
      }
      std::string lanes = fmt::format("lanes{}", number);
      if (is_max_of_pairs(task)) row_.line("Lanes<Max, 1> {} = pairs{}.lanes();", lanes, number);
      result = fmt::format("reduce_row<{}>({}, {})", threads, lanes, shared);
    }
    const std::string name = fmt::format("s{}", number);
    const DType dtype = op(task).type.dtype;
    row_.line("const {} {} = {};", register_type(dtype), name, rounded_code(result, dtype));
    values_.define_reduction(task.value, {name});
  }
}

std::string RowKernel::loop(const std::string& whole_chunk, const std::string& valid,
                            bool reduces) {
  const std::string body = valid + whole_chunk;
  const std::string width = space_.size_code(stage_->width);
  const std::string_view type = space_.index_type(*stage_);
  const std::string end =
      !stage_->width.is_constant()
          ? width
          : fmt::format("hidden({}{})", width, space_.has_int_index(*stage_) ? "" : "ll");
  const int64_t threads = owners();
  const std::string thread =
      threads == config_.threads_per_row ? "thread" : fmt::format("(thread % {})", threads);
  const int64_t lanes = reduces ? lanes_per_thread() : 1;
  if (!kept_ && lanes == 1)
    return fmt::format("for ({0} i = 8 * {1}, end = {2}; i < end; i += {3}) {{\n{4}}}\n", type,
                       thread, end, 8 * threads, indented(body));

  const int64_t chunks = kept_ ? config_.chunks_per_thread(problem_stage()) : lanes;
  const bool exact = kept_ && stage_->width.is(8 * threads * chunks);
  const auto walk_chunks = [&](int64_t from, int64_t to, const std::string& chunk) {
    return fmt::format(
        "#pragma unroll\nfor (int j = {}; j < {}; ++j) {{\n{}}}\n", from, to,
        indented(fmt::format("const {} i = {};\n", type,
                             kept_ ? fmt::format("8 * ({} + {} * j)", thread, threads)
                                   : fmt::format("first + {} * j", 8 * threads)) +
                 chunk));
  };
  const std::string guarded =
      exact ? body : fmt::format("if (i < {}) {{\n{}}}\n", kept_ ? width : "end", indented(body));
  if (kept_ && !valid.empty() && stage_->width.is_constant()) {
    // Only the last chunk of a thread may be short: the others' elements have no conditions.
    const int64_t whole = std::min(stage_->width.constant() / (8 * threads), chunks - 1);
    return (whole > 0 ? walk_chunks(0, whole, "constexpr int valid = 8;\n" + whole_chunk) : "") +
           walk_chunks(whole, chunks, guarded);
  }
  const std::string inner = walk_chunks(0, chunks, guarded);
  if (kept_) return inner;
  return fmt::format("for ({0} first = 8 * {1}, end = {2}; first < end; first += {3}) {{\n{4}}}\n",
                     type, thread, end, 8 * threads * lanes, indented(inner));
}

void RowKernel::walk(uint32_t stage, uint32_t pass) {
  std::vector<Task> tasks;
  bool reduces = false;
  for (const Task& task : form_.tasks) {
    if (task.stage != stage || task.pass != pass) continue;
    tasks.push_back(task);
    reduces |= task.output < 0;
  }
  if (tasks.empty()) return;
  stage_ = &form_.stages[stage];
  const bool tail = !space_.divides_by_chunk(stage_->width);
  values_.open(stage, pass, row_, tail);
  open_reductions(tasks);

  std::string guard = config_.rows_per_block > 1 || block_.in_loop ? "live" : "";
  const int64_t storing = stage_->axes.empty() ? 1 : owners();
  if (storing < config_.threads_per_row) guard = joined(guard, fmt::format("thread < {}", storing));
  if (!stage_->width.is(0)) {
    const int64_t lanes = lanes_per_thread();
    const std::string lane = lanes == 1 ? "0" : kept_ ? fmt::format("j % {}", lanes) : "j";
    for (const Task& task : tasks) {
      if (task.output >= 0)
        values_.store(task, task.output > 0 && !block_.side_guard.empty()
                                ? joined(guard, std::string(block_.side_guard))
                                : guard);
      else if (!stage_->axes.empty())
        take(task, lane);
    }
    if (pass == form_.first_pass(stage))
      for (const ValueEmitter::EarlyLoad& load : early_)
        if (load.stage == stage) values_.value(load.input, load.coords);
  }
  if (!stage_->axes.empty()) {
    const std::string body = values_.close();
    std::string valid;
    if (tail)
      valid = fmt::format("const int valid = {0} - i < 8 ? static_cast<int>({0} - i) : 8;\n",
                          space_.size_code(stage_->width));
    if (kept_) declare_kept(stage, pass);
    row_.text += loop(body, valid, reduces);
    if (pass == 0 && stage == 0) row_.text += block_.when_read;
  }
  close_reductions(tasks);
}

void RowKernel::declare_kept(uint32_t stage, uint32_t pass) {
  std::map<uint32_t, DType> kept;  // by number
  for (const auto& [key, value] : *kept_)
    if (value.stage == stage && value.first == pass) kept[value.number] = value.dtype;
  const int64_t chunks = config_.chunks_per_thread(problem_stage());
  for (const auto& [number, dtype] : kept)
    if (is_narrow(dtype))
      row_.line("Packed<{}> k{}[{}];", memory_type(dtype), number, chunks);
    else
      row_.line("{} k{}[{}][8];", register_type(dtype), number, chunks);
}

/// Prefetches what a later cluster reads of inputs with contiguous rows: each block an equal part,
/// where parts are whole words, or the first block all of it. (Which block of that cluster reads
/// which chunk does not matter.)
std::string RowKernel::prefetches() const {
  std::string text;
  if (config_.prefetch_distance == 0) return text;
  for (const auto& [input, stage] : values_.whole_rows()) {
    const SymExpr& width = form_.stages[stage].width;
    const int64_t bytes = whole_bytes(form_.graph[form_.graph.inputs[input]].type.dtype);
    const auto in_words = [&](int64_t parts) {
      return kChunkElements * bytes % kPointerAlignment == 0 && width.is_constant() &&
             width.constant() * bytes % (kPointerAlignment * parts) == 0;
    };
    const std::string later = fmt::format("{} + {}ll", block_.number, config_.prefetch_distance);
    if (in_words(config_.blocks))
      text += fmt::format("prefetch_part<{}>(x{}, {});\n", width.constant() / config_.blocks, input,
                          later);
    else if (in_words(1))
      text += fmt::format("prefetch_row<{}, {}>(x{}, {});\n", width.constant(), config_.blocks,
                          input, later);
  }
  return text;
}

std::string RowKernel::preamble() const {
  std::string text;
  if (shared_floats_ > 0) text += fmt::format("__shared__ float shared[{}];\n", shared_floats_);
  if (block_.in_loop) return text + space_.row_axes();
  if (config_.blocks > 1)
    return text + (meets_in_cluster_ ? "barrier_cluster_arrive_relaxed();\n" : "") +
           fmt::format(
               "const int thread = {0} % {1} * {2} + threadIdx.x;\n"
               "__builtin_assume(thread >= 0 && thread < {3});\n"
               "const long long row = {0} / {1};\n",
               block_.number, config_.blocks, config_.threads, config_.blocks * config_.threads) +
           space_.row_axes();
  if (config_.rows_per_block == 1)
    return text +
           fmt::format("const int thread = threadIdx.x;\nconst long long row = {};\n",
                       block_.number) +
           space_.row_axes();
  const std::string rows = space_.size_code(volume(form_.prefix));
  text += fmt::format(
      "const int thread = threadIdx.x % {0};\n"
      "const long long own_row = {3} * {1}ll + threadIdx.x / {0};\n"
      "const bool live = own_row < {2};\n"
      "const long long row = live ? own_row : {2} - 1;\n",
      config_.threads_per_row, config_.rows_per_block, rows, block_.number);
  return text + space_.row_axes();
}

Result<KernelBody> RowKernel::emit() {
  if (!volume(form_.prefix).is(0))
    for (uint32_t pass = 0; pass < form_.passes(); ++pass)
      for (uint32_t stage = 0; stage < form_.stages.size(); ++stage) walk(stage, pass);
  if (values_.error()) return tl::make_unexpected(*values_.error());
  KernelBody body;
  body.globals = values_.globals();
  if (!row_.text.empty()) {
    const std::string prefetching = prefetches();
    if (!prefetching.empty()) body.includes += "#include \"kernels/common/prefetch.cuh\"\n";
    body.text = preamble() + prefetching + row_.text;
  }
  body.launch.rows = volume(form_.prefix);
  body.launch.items_per_block = config_.rows_per_block;
  body.launch.threads = config_.threads;
  body.resident_blocks = config_.resident_blocks;
  body.launch.cluster = config_.blocks;
  return body;
}

}  // namespace sinter
