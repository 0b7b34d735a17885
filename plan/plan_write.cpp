#include <llvm/ADT/STLExtras.h>

#include <nlohmann/json.hpp>
#include <set>

#include "ir/activation_names.h"
#include "ir/text.h"
#include "plan/plan_file.h"
#include "plan/plan_text.h"

namespace sinter {
namespace {

using OrderedJson = nlohmann::ordered_json;

std::string dumped(const OrderedJson& value) {
  return value.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

// The value in one line of at most `width` characters, if that is possible; scalars always are.
std::optional<std::string> one_line(const OrderedJson& value, size_t width) {
  if (!value.is_structured()) return dumped(value);
  std::string line(1, value.is_object() ? '{' : '[');
  for (auto it = value.begin(); it != value.end(); ++it) {
    if (it != value.begin()) line += ", ";
    if (value.is_object()) line += dumped(it.key()) + ": ";
    const std::optional<std::string> item = one_line(*it, width);
    if (!item || line.size() + item->size() >= width) return std::nullopt;
    line += *item;
  }
  line += value.is_object() ? '}' : ']';
  return line;
}

void print(const OrderedJson& value, size_t indent, std::string& out) {
  if (const auto line = one_line(value, 100)) {
    out += *line;
    return;
  }
  out += value.is_object() ? '{' : '[';
  for (auto it = value.begin(); it != value.end(); ++it) {
    out += it == value.begin() ? "\n" : ",\n";
    out.append(indent + 2, ' ');
    if (value.is_object()) out += dumped(it.key()) + ": ";
    print(*it, indent + 2, out);
  }
  out += '\n';
  out.append(indent, ' ');
  out += value.is_object() ? '}' : ']';
}

OrderedJson lines(std::string_view text) {
  OrderedJson result = OrderedJson::array();
  while (!text.empty()) {
    const size_t end = text.find('\n');
    result.push_back(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return result;
}

class PlanWriter {
 public:
  explicit PlanWriter(const Program& program) : program_(program) {}

  OrderedJson plan() const {
    OrderedJson plan;
    plan["format"] = {{"name", kPlanFormat}, {"major", kPlanMajor}, {"requires", features()}};
    plan["sinter"] = SINTER_VERSION;
    plan["numerics"] = to_string(program_.numerics);
    if (program_.invariant) plan["invariant"] = true;
    plan["target"] = program_.target;
    plan["weights_fingerprint"] = weights_fingerprint(program_);
    plan["module"] = lines(plan_text::print_tables(program_));
    plan["kernels"] = OrderedJson::array();
    for (const Kernel& k : program_.kernels) plan["kernels"].push_back(kernel(k));
    plan["entries"] = OrderedJson::array();
    for (const EntryPlan& e : program_.entries) plan["entries"].push_back(entry(e));
    return plan;
  }

 private:
  std::set<std::string> features() const {
    std::set<std::string> features;
    if (!program_.states.empty()) features.insert("states");
    if (has_exact_integers()) features.insert("exact_integers");
    if (llvm::any_of(program_.kernels, [](const Kernel& k) { return !k.tensor_maps.empty(); }))
      features.insert("tensor_maps");
    if (has_in_place()) features.insert("in_place");
    if (program_.invariant) features.insert("invariant");
    for (const EntryPlan& entry : program_.entries) {
      if (entry.range) features.insert("variants");
      if (!entry.row_checks.empty()) features.insert("row_checks");
      for (const Step& step : entry.steps)
        visit(
            step, [](const KernelStep&) {},
            [&](const GemmStep& gemm) {
              features.insert("gemm");
              if (needs_fast_numerics(gemm)) features.insert("gemm_epilogue");
            },
            [&](const CopyStep&) { features.insert("copy"); },
            [&](const CollectiveStep&) { features.insert("collective"); });
    }
    return features;
  }

  /// Whether a step writes a buffer in the memory of one that it reads, or a kernel is made for it.
  bool has_in_place() const {
    const auto has = [](const EntryPlan& entry) {
      return llvm::is_contained(buffers_written_over(entry), true);
    };
    return llvm::any_of(program_.entries, has) ||
           llvm::any_of(program_.kernels, [](const Kernel& k) { return !k.in_place.empty(); });
  }

  /// Whether the text has integers that no double equals.
  bool has_exact_integers() const {
    const auto exact = [](const Number& number) { return number.beyond_double().has_value(); };
    const auto op_has = [&](const Op& op) {
      return (op.kind == OpKind::constant && exact(op.attrs.get<Number>(AttrName::value))) ||
             (op.kind == OpKind::literal &&
              llvm::any_of(op.attrs.get<std::vector<Number>>(AttrName::values), exact));
    };
    const auto has = [&](const Graph& graph) { return llvm::any_of(graph.ops(), op_has); };
    return llvm::any_of(program_.weights, [&](const Weight& w) { return has(w.init); }) ||
           llvm::any_of(program_.kernels, [&](const Kernel& k) { return has(k.group); });
  }

  std::string text(const SymExpr& expr) const { return to_string(expr, program_.symbols); }

  OrderedJson range(const SymbolRange& range) const {
    return {{"symbol", program_.symbols[range.symbol.index].name},
            {"low", range.low},
            {"high", range.high}};
  }

  OrderedJson kernel(const Kernel& kernel) const {
    OrderedJson symbols = OrderedJson::array();
    for (SymbolId id : kernel.symbols) symbols.push_back(program_.symbols[id.index].name);
    const Launch& launch = kernel.launch;
    OrderedJson json;
    json["name"] = kernel.name;
    json["file"] = kernel_path(kernel);
    json["hash"] = text_hash(kernel);
    json["minimum_arch"] = kernel.minimum_arch;
    json["overlap"] = {{"waits", kernel.overlap.waits},
                       {"triggers_after_wait", kernel.overlap.triggers_after_wait},
                       {"early_inputs", kernel.overlap.early_inputs},
                       {"early_caches", kernel.overlap.early_caches}};
    json["symbols"] = std::move(symbols);
    if (kernel.range) json["range"] = range(*kernel.range);
    json["launch"] = {{"rows", text(launch.rows)},
                      {"items_per_row", launch.items_per_row},
                      {"symbolic_items", text(launch.symbolic_items)},
                      {"items_per_block", launch.items_per_block},
                      {"threads", launch.threads},
                      {"shared_bytes", launch.shared_bytes},
                      {"wanted_shared_bytes", text(launch.wanted_shared_bytes)},
                      {"cluster", launch.cluster},
                      {"items_without_clusters", launch.items_without_clusters}};
    if (launch.most_blocks > 0) json["launch"]["most_blocks"] = launch.most_blocks;
    for (const TensorMap& map : kernel.tensor_maps) json["tensor_maps"].push_back(tensor_map(map));
    for (const InPlace& pair : kernel.in_place)
      json["in_place"].push_back({{"output", pair.output}, {"input", pair.input}});
    json["appends"] = kernel.appends;
    json["group"] = lines(print_graph(kernel.group, program_.symbols));
    return json;
  }

  OrderedJson tensor_map(const TensorMap& map) const {
    const auto texts = [&](llvm::ArrayRef<SymExpr> sizes) {
      OrderedJson list = OrderedJson::array();
      for (const SymExpr& size : sizes) list.push_back(text(size));
      return list;
    };
    return {{"input", map.input},      {"offset", text(map.offset)},
            {"dims", texts(map.dims)}, {"strides", texts(map.strides)},
            {"box", map.box},          {"swizzle", map.swizzle}};
  }

  OrderedJson buffer(const Buffer& buffer) const {
    OrderedJson json;
    json["value"] = buffer.value;
    json["type"] = to_string(buffer.type, program_.symbols);
    switch (buffer.place) {
      case Buffer::Place::arena:
        json["place"] = "arena";
        json["slot"] = buffer.slot;
        json["bytes"] = text(buffer.size_bytes);
        json["steps"] = {buffer.first_step, buffer.last_step};
        return json;
      case Buffer::Place::input:
        json["place"] = "input";
        break;
      case Buffer::Place::weight:
        json["place"] = "weight";
        break;
      case Buffer::Place::state:
        json["place"] = "state";
        json["version"] = buffer.version;
        break;
      case Buffer::Place::exchange:
        json["place"] = "exchange";
        return json;
    }
    json["index"] = buffer.index;
    return json;
  }

  OrderedJson operand(const GemmOperand& operand) const {
    return {{"buffer", operand.buffer},
            {"offset", text(operand.offset)},
            {"row_stride", text(operand.row_stride)},
            {"column_stride", text(operand.column_stride)}};
  }

  OrderedJson gemm(const GemmStep& step) const {
    OrderedJson json;
    json["m"] = text(step.m);
    json["n"] = text(step.n);
    json["k"] = text(step.k);
    json["a"] = operand(step.a);
    json["b"] = operand(step.b);
    json["c"] = operand(step.c);
    if (step.bias >= 0) json["bias"] = step.bias;
    if (step.residual >= 0) json["residual"] = step.residual;
    if (step.activation != Activation::none) json["activation"] = to_string(step.activation);
    if (step.ascending) json["ascending"] = true;
    json["loops"] = OrderedJson::array();
    for (const GemmStep::Loop& loop : step.loops)
      json["loops"].push_back({{"count", text(loop.count)},
                               {"a_stride", text(loop.a_stride)},
                               {"b_stride", text(loop.b_stride)},
                               {"c_stride", text(loop.c_stride)}});
    return json;
  }

  OrderedJson step(const Step& step) const {
    OrderedJson json;
    json["values"] = step.values;
    visit(
        step,
        [&](const KernelStep& run) {
          json["kernel"] = program_.kernels[run.kernel].name;
          json["inputs"] = run.inputs;
          json["outputs"] = run.outputs;
        },
        [&](const GemmStep& run) { json["gemm"] = gemm(run); },
        [&](const CopyStep& copy) {
          json["copy"] = {{"from", copy.from}, {"to", copy.to}};
        },
        [&](const CollectiveStep& run) {
          json["collective"] = {{"kind", to_string(run.kind)},
                                {"from", run.from},
                                {"exchange", run.exchange},
                                {"to", run.to},
                                {"group", run.group}};
        });
    return json;
  }

  OrderedJson entry(const EntryPlan& entry) const {
    OrderedJson json;
    json["name"] = entry.name;
    if (entry.range) json["range"] = range(*entry.range);
    json["inputs"] = entry.inputs;
    json["outputs"] = entry.outputs;
    json["output_names"] = entry.output_names;
    for (const RowCheck& check : entry.row_checks) {
      OrderedJson& item = json["row_checks"].emplace_back();
      item = {{"buffer", check.buffer}, {"rows", text(check.rows)}};
      if (check.ends) item["ends"] = true;
      item["op"] = check.op;
    }
    json["buffers"] = OrderedJson::array();
    for (const Buffer& b : entry.buffers) json["buffers"].push_back(buffer(b));
    json["steps"] = OrderedJson::array();
    for (const Step& s : entry.steps) json["steps"].push_back(step(s));
    return json;
  }

  const Program& program_;
};

}  // namespace

std::string write_plan(const Program& program) {
  std::string out;
  print(PlanWriter(program).plan(), 0, out);
  out += '\n';
  return out;
}

}  // namespace sinter
