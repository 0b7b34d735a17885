// Parts side by side: rows that share no element, each part with blocks of its own and a function
// of its own, in which its inputs, results and blocks count from 0:
//
//   namespace part0 {
//   SINTER_DEVICE void run(const float* x0, float* y0, long long n0, long long block) { ... }
//   }  // namespace part0
//   ... {
//     const long long block = blockIdx.x;
//     const long long end0 = (n0 * 32 + 15) / 16;
//     const long long end1 = end0 + (n0 * 8 + 15) / 16;
//     if (block < end0) {
//       part0::run(x0, y0, n0, block);
//     } else if (block < end1) {
//       part1::run(x1, y1, n0, block - end0);
//     }
//
// Parts with the same text share a function, and their blocks stand side by side:
//
//     } else if (block < end3) {
//       const float* own_x0;
//       float* own_y0;
//       long long first;
//       if (block < end2) {
//         own_x0 = x2, own_y0 = y2, first = end1;
//       } else {
//         own_x0 = x3, own_y0 = y3, first = end2;
//       }
//       part2::run(own_x0, own_y0, n0, block - first);
//     }
//
// All blocks of a launch have as many threads as the widest part needs.
#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "codegen/emission/emit_index.h"
#include "codegen/emission/emit_scope.h"
#include "codegen/lowering/emit_body.h"
#include "ir/integers.h"
#include "plan/kernel_text.h"

namespace sinter {
namespace {

struct Part {
  Graph graph;
  llvm::SmallVector<uint32_t, 8> inputs;  // of the group, in the order of graph.inputs
  uint32_t prefix_rank = 0;
  llvm::ArrayRef<uint32_t> outputs;
  KernelBody body;
  bool is_first = true;  // of the parts with its text
};

/// The part of the group that computes the wanted outputs; `number_of_input`: by value of the
/// group. It takes time by the part's size: a group may have many parts.
Part part_of(const Graph& group, const llvm::DenseMap<uint32_t, uint32_t>& number_of_input,
             const KernelPart& wanted) {
  Part part;
  part.prefix_rank = wanted.prefix_rank;
  part.outputs = wanted.outputs;
  std::map<uint32_t, ValueId> values;  // of the group that are needed, and their copies
  for (uint32_t output : wanted.outputs) values[group.outputs[output].index];
  for (auto at = values.rbegin(); at != values.rend(); ++at)  // operands come before
    for (ValueId operand : group.ops()[at->first].operands) values[operand.index];
  for (auto& [index, copy] : values) {
    Op op = group.ops()[index];
    for (ValueId& operand : op.operands) operand = values[operand.index];
    copy = part.graph.add(std::move(op));
    if (const auto input = number_of_input.find(index); input != number_of_input.end())
      part.inputs.push_back(input->second);
  }
  llvm::sort(part.inputs);
  for (uint32_t k : part.inputs) part.graph.inputs.push_back(values[group.inputs[k].index]);
  for (uint32_t output : wanted.outputs)
    part.graph.outputs.push_back(values[group.outputs[output].index]);
  return part;
}

/// The number of items of `launch`: blocks = ceil(items / items_per_block).
SymExpr items_of(const Launch& launch) {
  return launch.rows *
         (launch.symbolic_items.is(0) ? SymExpr(launch.items_per_row) : launch.symbolic_items);
}

/// Blocks for all parts. A part's last block may be incomplete: room for it costs up to one block
/// in the end which does nothing.
Launch launch_of(llvm::ArrayRef<Part> parts, int64_t threads) {
  Launch launch;
  launch.threads = threads;
  for (const Part& part : parts)
    launch.items_per_block = std::lcm(launch.items_per_block, part.body.launch.items_per_block);
  for (const Part& part : parts) {
    const int64_t own = part.body.launch.items_per_block;
    const SymExpr room(&part == &parts.back() ? 0 : own - 1);
    launch.rows += (items_of(part.body.launch) + room) * SymExpr(launch.items_per_block / own);
  }
  return launch;
}

std::string function_of(const Part& part, size_t number, size_t symbols) {
  // The kernel's own parameters are __restrict__ where they may be.
  std::string parameters = parameters_of(part.graph, symbols, false);
  parameters += fmt::format("{}long long block", parameters.empty() ? "" : ", ");
  return fmt::format(
      "namespace part{0} {{\n{1}SINTER_DEVICE void run({2}) {{\n{3}}}\n}}  // namespace part{0}\n",
      number, part.body.globals, parameters, indented(part.body.text));
}

/// The parts in the order of their blocks: behind each those with the same text.
std::vector<Part> by_function(std::vector<Part> parts, size_t symbols) {
  std::map<std::string, size_t> first;  // by text
  std::vector<std::pair<size_t, size_t>> order;
  for (size_t k = 0; k < parts.size(); ++k)
    order.push_back({first.try_emplace(function_of(parts[k], 0, symbols), k).first->second, k});
  std::sort(order.begin(), order.end());
  std::vector<Part> sorted;
  for (const auto& [function, k] : order) {
    sorted.push_back(std::move(parts[k]));
    sorted.back().is_first = function == k;
  }
  return sorted;
}

std::string begin_of(size_t part) { return part == 0 ? "0" : fmt::format("end{}", part - 1); }

/// Sets the pointers of the part that has the block, one of `begin` .. `end` - 1, by bisection.
std::string choose_part(llvm::ArrayRef<Part> parts, size_t begin, size_t end) {
  if (begin + 1 < end) {
    const size_t middle = (begin + end) / 2;
    return fmt::format("if (block < end{}) {{\n{}}} else {{\n{}}}\n", middle - 1,
                       indented(choose_part(parts, begin, middle)),
                       indented(choose_part(parts, middle, end)));
  }
  const Part& part = parts[begin];
  std::string text;
  for (size_t k = 0; k < part.inputs.size(); ++k)
    text += fmt::format("own_x{} = x{}, ", k, part.inputs[k]);
  for (size_t k = 0; k < part.outputs.size(); ++k)
    text += fmt::format("own_y{} = y{}, ", k, part.outputs[k]);
  return text + fmt::format("first = {};\n", begin_of(begin));
}

/// The call of the function that the parts `begin` .. `end` - 1 share.
std::string call_of(llvm::ArrayRef<Part> parts, size_t begin, size_t end, size_t symbols) {
  const Part& part = parts[begin];
  if (begin + 1 == end)
    return fmt::format("part{}::run({}, {});\n", begin,
                       arguments_of(part.inputs, part.outputs, symbols),
                       begin == 0 ? "block" : "block - " + begin_of(begin));
  std::string declared, arguments;
  const auto add = [&](std::string_view constant, ValueId value, std::string name) {
    declared += fmt::format("{}{}* own_{};\n", constant,
                            dtype_info(part.graph[value].type.dtype).memory, name);
    arguments += fmt::format("own_{}, ", name);
  };
  for (size_t k = 0; k < part.inputs.size(); ++k)
    add("const ", part.graph.inputs[k], fmt::format("x{}", k));
  for (size_t k = 0; k < part.outputs.size(); ++k)
    add("", part.graph.outputs[k], fmt::format("y{}", k));
  for (size_t k = 0; k < symbols; ++k) arguments += fmt::format("n{}, ", k);
  return declared + "long long first;\n" + choose_part(parts, begin, end) +
         fmt::format("part{}::run({}block - first);\n", begin, arguments);
}

std::string blocks_code(const Launch& launch, llvm::ArrayRef<SymbolId> parameters) {
  const SymExpr items = items_of(launch);
  const int64_t own = launch.items_per_block;
  if (items.is_constant()) return fmt::format("{}", ceil_div(items.constant(), own));
  if (own == 1) return size_code(items, parameters, false);
  return fmt::format("({} + {}) / {}", size_code(items, parameters, false), own - 1, own);
}

Status emit_function(Part& part, const EmitContext& whole, int64_t min_threads) {
  const Overlap none;
  SINTER_LET(body,
             emit_body({.group = part.graph,
                        .prefix_rank = part.prefix_rank,
                        .symbols = whole.symbols,
                        .parameters = whole.parameters,
                        .device = whole.device,
                        .overlap = none,
                        .forms = whole.forms,
                        .block = {.number = "block", .alone = false, .min_threads = min_threads},
                        .anchor = find_anchor(part.graph)}));
  part.body = std::move(body);
  return {};
}

}  // namespace

Result<KernelBody> emit_parts(const EmitContext& context, llvm::ArrayRef<KernelPart> wanted) {
  const llvm::ArrayRef<SymbolId> parameters = context.parameters;
  llvm::DenseMap<uint32_t, uint32_t> number_of_input;
  for (uint32_t k = 0; k < context.group.inputs.size(); ++k)
    number_of_input[context.group.inputs[k].index] = k;
  std::vector<Part> parts;
  for (const KernelPart& part : wanted)
    if (!part.outputs.empty()) parts.push_back(part_of(context.group, number_of_input, part));
  int64_t threads = 1;
  for (Part& part : parts) {
    SINTER_TRY(emit_function(part, context, threads));
    threads = std::max(threads, part.body.launch.threads);
  }
  for (Part& part : parts)
    if (part.body.launch.threads < threads) SINTER_TRY(emit_function(part, context, threads));
  parts = by_function(std::move(parts), parameters.size());
  KernelBody body;
  std::string ends, branches;
  for (size_t k = 0; k < parts.size(); ++k) {
    ends += fmt::format("const long long end{} = {}{};\n", k, k == 0 ? "" : begin_of(k) + " + ",
                        blocks_code(parts[k].body.launch, parameters));
    if (!parts[k].is_first) continue;
    body.globals += function_of(parts[k], k, parameters.size()) + '\n';
    size_t end = k + 1;
    while (end < parts.size() && !parts[end].is_first) ++end;
    branches += fmt::format("{}if (block < end{}) {{\n{}}}", k == 0 ? "" : " else ", end - 1,
                            indented(call_of(parts, k, end, parameters.size())));
  }
  body.text = "const long long block = blockIdx.x;\n" + ends + branches + "\n";
  body.launch = launch_of(parts, threads);
  return body;
}

}  // namespace sinter
