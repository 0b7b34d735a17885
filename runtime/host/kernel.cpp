#include "runtime/host/kernel.h"

#include <cstring>

#include "ir/decompose.h"
#include "ir/graph_rewriter.h"
#include "ir/op_roles.h"
#include "ir/row_numbers.h"

namespace sinter {
namespace {

// `graph` without the appends that nothing reads, outputs included.
Graph without_unread_appends(const Graph& graph) {
  std::vector<bool> read(graph.size(), false);
  for (const Op& op : graph.ops())
    for (ValueId operand : op.operands) read[operand.index] = true;
  for (ValueId output : graph.outputs) read[output.index] = true;
  Graph result;
  GraphRewriter rewriter(graph, result);
  rewriter.rewrite([&](ValueId id, Op op) {
    const bool is_left_out = writes_state(op) && !read[id.index];
    return is_left_out ? ValueId() : rewriter.add(std::move(op));
  });
  return result;
}

}  // namespace

HostKernel make_host_kernel(const Kernel& kernel, llvm::ArrayRef<Symbol> symbols) {
  HostKernel host;
  Graph graph = decompose_all(kernel.group, symbols);
  llvm::SmallVector<ValueId, 4> outputs;
  for (uint32_t i = 0; i < graph.outputs.size(); ++i) {
    const ValueId output = graph.outputs[i];
    if (writes_rows(graph[output])) continue;
    host.results.push_back(i);
    outputs.push_back(writes_state(graph[output]) ? operand_with(graph[output], OperandRole::update)
                                                  : output);
  }
  for (uint32_t i : kernel.appends) {
    const Op& append = graph[graph.outputs[i]];
    if (!writes_rows(append)) continue;
    const auto next = static_cast<uint32_t>(outputs.size());
    host.appends.push_back({i, next, next + 1, is_checked(append)});
    outputs.push_back(append.operands[1]);
    outputs.push_back(append.operands[2]);
  }
  graph.outputs = std::move(outputs);
  host.graph = without_unread_appends(graph);
  return host;
}

Status write_rows(const HostTensor& rows, const HostTensor& slots, bool checked,
                  HostTensor& state) {
  const int64_t count = slots.volume();
  const int64_t capacity = state.dims.empty() ? 0 : state.dims[0];
  if (count == 0 || rows.bytes.empty()) return {};
  const size_t row_bytes = rows.bytes.size() / static_cast<size_t>(count);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t slot = slots.data<int32_t>()[i];
    const bool inside = slot >= 0 && slot < capacity;
    if (!inside && checked) continue;
    if (!inside)
      return fail(fmt::format("slot {} of token {} in a state of {} rows", slot, i, capacity), {},
                  "give slots below the state's number of rows");
    std::memcpy(state.bytes.data() + static_cast<size_t>(slot) * row_bytes,
                rows.bytes.data() + static_cast<size_t>(i) * row_bytes, row_bytes);
  }
  return {};
}

}  // namespace sinter
