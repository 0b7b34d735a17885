// One function per kind of object, in the order of the file; longer than most because they are
// many.
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "ir/activation_names.h"
#include "ir/c_locale.h"
#include "ir/text.h"
#include "ir/variants.h"
#include "plan/checker.h"
#include "plan/plan_file.h"
#include "plan/plan_text.h"

namespace sinter {
namespace {

using Json = nlohmann::json;

// A place in the document that is there or not; the error of a use names it.
class Node {
 public:
  Node(const Json* value, std::string where) : value_(value), where_(std::move(where)) {}

  Node operator[](const char* key) const {
    const Json* child = nullptr;
    if (value_ && value_->is_object())
      if (auto it = value_->find(key); it != value_->end()) child = &*it;
    return {child, fmt::format("{}/{}", where_, key)};
  }
  bool present() const { return value_ != nullptr; }

  Result<std::vector<Node>> items() const {
    if (!value_ || !value_->is_array()) return mismatch("a list");
    std::vector<Node> items;
    for (size_t i = 0; i < value_->size(); ++i)
      items.emplace_back(&(*value_)[i], fmt::format("{}/{}", where_, i));
    return items;
  }
  Result<std::string> string() const {
    if (!value_ || !value_->is_string()) return mismatch("a string");
    return value_->get<std::string>();
  }
  Result<bool> boolean() const {
    if (!value_ || !value_->is_boolean()) return mismatch("true or false");
    return value_->get<bool>();
  }
  template <typename T>
  Result<T> integer() const {
    constexpr auto least = static_cast<int64_t>(std::numeric_limits<T>::min());
    constexpr auto most = static_cast<int64_t>(std::numeric_limits<T>::max());
    const bool fits =
        value_ && value_->is_number_integer() &&
        (!value_->is_number_unsigned() || value_->get<uint64_t>() <= static_cast<uint64_t>(most)) &&
        value_->get<int64_t>() >= least && value_->get<int64_t>() <= most;
    if (!fits) return mismatch(fmt::format("an integer of {}..{}", least, most));
    return static_cast<T>(value_->get<int64_t>());
  }

  tl::unexpected<Error> mismatch(std::string_view expected) const {
    // dump() calls itself for each level of a document, of which there may be millions.
    const std::string got = !value_ ? "nothing"
                            : value_->is_structured()
                                ? std::string("an ") + value_->type_name()
                                : value_->dump(-1, ' ', false, Json::error_handler_t::replace);
    return bad(fmt::format("expected {}, got {}", expected, printable(got, 60)));
  }
  tl::unexpected<Error> bad(std::string what) const { return fail(std::move(what), where_); }
  const std::string& where() const { return where_; }

 private:
  const Json* value_;
  std::string where_;
};

Status read(const Node& node, bool& out) {
  SINTER_LET(value, node.boolean());
  out = value;
  return {};
}
Status read(const Node& node, std::string& out) {
  SINTER_LET(value, node.string());
  out = std::move(value);
  return {};
}
template <typename T>
requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) Status read(const Node& node, T& out) {
  SINTER_LET(value, node.integer<T>());
  out = value;
  return {};
}
template <typename T>
Status read(const Node& node, std::vector<T>& out) {
  SINTER_LET(items, node.items());
  for (const Node& item : items) SINTER_TRY(read(item, out.emplace_back()));
  return {};
}

Result<std::string> read_lines(const Node& node) {
  std::vector<std::string> lines;
  SINTER_TRY(read(node, lines));
  return fmt::format("{}\n", fmt::join(lines, "\n"));
}

class PlanReader {
 public:
  Result<Program> plan(const Node& root) {
    SINTER_TRY(format(root));
    SINTER_TRY(numerics(root["numerics"]));
    if (root["invariant"].present()) SINTER_TRY(read(root["invariant"], program_.invariant));
    SINTER_TRY(read(root["target"], program_.target));
    SINTER_TRY(tables(root));
    SINTER_LET(kernels, root["kernels"].items());
    for (const Node& node : kernels) {
      SINTER_TRY(kernel(node, program_.kernels.emplace_back()));
      const auto id = static_cast<uint32_t>(program_.kernels.size() - 1);
      if (!kernel_ids_.emplace(program_.kernels.back().name, id).second)
        return node["name"].bad("two kernels have this name");
    }
    SINTER_LET(entries, root["entries"].items());
    for (const Node& node : entries) SINTER_TRY(entry(node, program_.entries.emplace_back()));
    return std::move(program_);
  }

 private:
  Status format(const Node& root) {
    SINTER_LET(major, root["format"]["major"].integer<int64_t>());
    std::string writer = "of an unknown version";
    if (const auto version = root["sinter"].string()) writer = printable(*version);
    if (major != kPlanMajor)
      return fail(
          fmt::format("plan format {}, written by sinter {}; this is sinter {}, which reads "
                      "format {}",
                      major, writer, SINTER_VERSION, kPlanMajor),
          root["format"]["major"].where(), "compile the model again");
    const Node name = root["format"]["name"];
    SINTER_LET(format_name, name.string());
    if (format_name != kPlanFormat) return name.mismatch(kPlanFormat);
    std::vector<std::string> required;
    SINTER_TRY(read(root["format"]["requires"], required));
    for (const std::string& feature : required)
      if (!llvm::is_contained(plan_text::kFeatures, feature))
        return fail(fmt::format("the plan, written by sinter {}, needs the feature \"{}\", which "
                                "this sinter {} does not have",
                                writer, printable(feature), SINTER_VERSION),
                    root["format"]["requires"].where(), "compile the model again");
    return {};
  }

  Status numerics(const Node& node) {
    SINTER_LET(text, node.string());
    const std::optional<Numerics> parsed = parse_numerics(text);
    if (!parsed) return node.mismatch("strict or fast");
    program_.numerics = *parsed;
    return {};
  }

  Status tables(const Node& root) {
    SINTER_LET(text, read_lines(root["module"]));
    SINTER_LET(module, parse_module(text, root["module"].where()));
    if (!module.entries.empty()) return root["module"].bad("entries stand in a plan's module");
    program_.name = std::move(module.name);
    program_.symbols = std::move(module.symbols);
    program_.weights = std::move(module.weights);
    program_.states = std::move(module.states);
    SINTER_LET(fingerprint, root["weights_fingerprint"].string());
    const std::string actual = weights_fingerprint(program_);
    if (fingerprint != actual)
      return root["weights_fingerprint"].bad(
          fmt::format("fingerprint {} for weights with {}", printable(fingerprint), actual));
    return {};
  }

  Status expr(const Node& node, SymExpr& out) const {
    SINTER_LET(text, node.string());
    auto parsed = plan_text::parse_expr(text, program_.symbols);
    if (!parsed) return node.bad(parsed.error().what);
    out = std::move(*parsed);
    return {};
  }

  Status symbol_id(const Node& node, SymbolId& out) const {
    SINTER_LET(name, node.string());
    const auto it =
        llvm::find_if(program_.symbols, [&](const Symbol& s) { return s.name == name; });
    if (it == program_.symbols.end()) return node.bad(fmt::format("no symbol {}", printable(name)));
    out = {static_cast<uint32_t>(it - program_.symbols.begin())};
    return {};
  }

  Status range(const Node& node, std::optional<SymbolRange>& out) const {
    if (!node.present()) return {};
    SymbolRange range;
    SINTER_TRY(symbol_id(node["symbol"], range.symbol));
    SINTER_TRY(read(node["low"], range.low));
    SINTER_TRY(read(node["high"], range.high));
    const Symbol& symbol = program_.symbols[range.symbol.index];
    if (range.low < symbol.low || range.low > range.high || range.high > symbol.high)
      return node.bad(fmt::format("a range that symbol {} in [{}, {}] does not have", symbol.name,
                                  symbol.low, symbol.high));
    out = range;
    return {};
  }

  Status kernel(const Node& node, Kernel& out) const {
    SINTER_TRY(read(node["name"], out.name));
    SINTER_LET(file, node["file"].string());
    if (const std::string path = kernel_path(out); file != path)
      return node["file"].mismatch(printable(path));
    SINTER_TRY(read(node["hash"], out.source_hash));
    SINTER_TRY(read(node["minimum_arch"], out.minimum_arch));
    const Node overlap = node["overlap"];
    SINTER_TRY(read(overlap["waits"], out.overlap.waits));
    SINTER_TRY(read(overlap["triggers_after_wait"], out.overlap.triggers_after_wait));
    SINTER_TRY(read(overlap["early_inputs"], out.overlap.early_inputs));
    SINTER_TRY(read(overlap["early_caches"], out.overlap.early_caches));
    SINTER_TRY(read(node["appends"], out.appends));
    if (node["in_place"].present()) {
      SINTER_LET(pairs, node["in_place"].items());
      for (const Node& pair : pairs) {
        InPlace& in_place = out.in_place.emplace_back();
        SINTER_TRY(read(pair["output"], in_place.output));
        SINTER_TRY(read(pair["input"], in_place.input));
      }
    }
    if (node["tensor_maps"].present()) {
      SINTER_LET(maps, node["tensor_maps"].items());
      for (const Node& map : maps) SINTER_TRY(tensor_map(map, out.tensor_maps.emplace_back()));
    }
    SINTER_LET(symbols, node["symbols"].items());
    for (const Node& symbol : symbols) {
      SINTER_TRY(symbol_id(symbol, out.symbols.emplace_back()));
    }
    SINTER_TRY(range(node["range"], out.range));
    const Node launch = node["launch"];
    SINTER_TRY(expr(launch["rows"], out.launch.rows));
    SINTER_TRY(read(launch["items_per_row"], out.launch.items_per_row));
    SINTER_TRY(expr(launch["symbolic_items"], out.launch.symbolic_items));
    SINTER_TRY(read(launch["items_per_block"], out.launch.items_per_block));
    SINTER_TRY(read(launch["threads"], out.launch.threads));
    SINTER_TRY(read(launch["shared_bytes"], out.launch.shared_bytes));
    SINTER_TRY(expr(launch["wanted_shared_bytes"], out.launch.wanted_shared_bytes));
    SINTER_TRY(read(launch["cluster"], out.launch.cluster));
    SINTER_TRY(read(launch["items_without_clusters"], out.launch.items_without_clusters));
    if (launch["most_blocks"].present())
      SINTER_TRY(read(launch["most_blocks"], out.launch.most_blocks));
    SINTER_LET(text, read_lines(node["group"]));
    SINTER_LET(group,
               parse_graph(text, node["group"].where(), narrowed(program_.symbols, out.range)));
    out.group = std::move(group);
    return {};
  }

  Status exprs(const Node& node, std::vector<SymExpr>& out) const {
    SINTER_LET(items, node.items());
    for (const Node& item : items) SINTER_TRY(expr(item, out.emplace_back()));
    return {};
  }

  Status tensor_map(const Node& node, TensorMap& out) const {
    SINTER_TRY(read(node["input"], out.input));
    SINTER_TRY(expr(node["offset"], out.offset));
    SINTER_TRY(exprs(node["dims"], out.dims));
    SINTER_TRY(exprs(node["strides"], out.strides));
    SINTER_TRY(read(node["box"], out.box));
    return read(node["swizzle"], out.swizzle);
  }

  Status buffer(const Node& node, Buffer& out) const {
    SINTER_TRY(read(node["value"], out.value));
    SINTER_LET(type, node["type"].string());
    auto parsed = plan_text::parse_type(type, program_.symbols);
    if (!parsed) return node["type"].bad(parsed.error().what);
    out.type = std::move(*parsed);
    SINTER_LET(place, node["place"].string());
    if (place == "arena") {
      SINTER_TRY(read(node["slot"], out.slot));
      SINTER_TRY(expr(node["bytes"], out.size_bytes));
      std::vector<uint32_t> steps;
      SINTER_TRY(read(node["steps"], steps));
      if (steps.size() != 2) return node["steps"].mismatch("two steps");
      out.first_step = steps[0];
      out.last_step = steps[1];
      return {};
    }
    if (place == "input")
      out.place = Buffer::Place::input;
    else if (place == "weight")
      out.place = Buffer::Place::weight;
    else if (place == "state")
      out.place = Buffer::Place::state;
    else if (place == "exchange")
      out.place = Buffer::Place::exchange;
    else
      return node["place"].mismatch("arena, exchange, input, weight or state");
    if (out.place == Buffer::Place::state) SINTER_TRY(read(node["version"], out.version));
    out.size_bytes = storage_bytes(out.type);
    if (out.place == Buffer::Place::exchange) return {};
    return read(node["index"], out.index);
  }

  Status operand(const Node& node, GemmOperand& out) const {
    SINTER_TRY(read(node["buffer"], out.buffer));
    SINTER_TRY(expr(node["offset"], out.offset));
    SINTER_TRY(expr(node["row_stride"], out.row_stride));
    return expr(node["column_stride"], out.column_stride);
  }

  Status gemm(const Node& node, GemmStep& out) const {
    SINTER_TRY(expr(node["m"], out.m));
    SINTER_TRY(expr(node["n"], out.n));
    SINTER_TRY(expr(node["k"], out.k));
    SINTER_TRY(operand(node["a"], out.a));
    SINTER_TRY(operand(node["b"], out.b));
    SINTER_TRY(operand(node["c"], out.c));
    if (node["bias"].present()) {
      SINTER_LET(bias, node["bias"].integer<uint32_t>());
      out.bias = bias;
    }
    if (node["residual"].present()) {
      SINTER_LET(residual, node["residual"].integer<uint32_t>());
      out.residual = residual;
    }
    if (node["activation"].present()) {
      SINTER_LET(text, node["activation"].string());
      const std::optional<Activation> parsed = parse_activation(text);
      if (!parsed) return node["activation"].mismatch("relu or gelu_tanh");
      out.activation = *parsed;
    }
    if (node["ascending"].present()) SINTER_TRY(read(node["ascending"], out.ascending));
    SINTER_LET(loops, node["loops"].items());
    for (const Node& item : loops) {
      GemmStep::Loop& loop = out.loops.emplace_back();
      SINTER_TRY(expr(item["count"], loop.count));
      SINTER_TRY(expr(item["a_stride"], loop.a_stride));
      SINTER_TRY(expr(item["b_stride"], loop.b_stride));
      SINTER_TRY(expr(item["c_stride"], loop.c_stride));
    }
    return {};
  }

  Status copy(const Node& node, CopyStep& out) const {
    SINTER_TRY(read(node["from"], out.from));
    return read(node["to"], out.to);
  }

  Status collective(const Node& node, CollectiveStep& out) const {
    SINTER_LET(kind, node["kind"].string());
    if (kind != to_string(out.kind)) return node["kind"].mismatch("all_reduce");
    SINTER_TRY(read(node["from"], out.from));
    SINTER_TRY(read(node["exchange"], out.exchange));
    SINTER_TRY(read(node["to"], out.to));
    return read(node["group"], out.group);
  }

  Status step(const Node& node, Step& out) const {
    SINTER_TRY(read(node["values"], out.values));
    if (node["gemm"].present()) return gemm(node["gemm"], out.run.emplace<GemmStep>());
    if (node["copy"].present()) return copy(node["copy"], out.run.emplace<CopyStep>());
    if (node["collective"].present())
      return collective(node["collective"], out.run.emplace<CollectiveStep>());
    SINTER_LET(name, node["kernel"].string());
    const auto kernel = kernel_ids_.find(name);
    if (kernel == kernel_ids_.end())
      return node["kernel"].bad(fmt::format("no kernel {}", printable(name)));
    KernelStep& run = out.run.emplace<KernelStep>();
    run.kernel = kernel->second;
    SINTER_TRY(read(node["inputs"], run.inputs));
    return read(node["outputs"], run.outputs);
  }

  Status row_check(const Node& node, RowCheck& out) const {
    SINTER_TRY(read(node["buffer"], out.buffer));
    SINTER_TRY(expr(node["rows"], out.rows));
    if (node["ends"].present()) SINTER_TRY(read(node["ends"], out.ends));
    return read(node["op"], out.op);
  }

  Status entry(const Node& node, EntryPlan& out) const {
    SINTER_TRY(read(node["name"], out.name));
    SINTER_TRY(range(node["range"], out.range));
    SINTER_TRY(read(node["inputs"], out.inputs));
    SINTER_TRY(read(node["outputs"], out.outputs));
    SINTER_TRY(read(node["output_names"], out.output_names));
    if (node["row_checks"].present()) {
      SINTER_LET(checks, node["row_checks"].items());
      for (const Node& item : checks) SINTER_TRY(row_check(item, out.row_checks.emplace_back()));
    }
    SINTER_LET(buffers, node["buffers"].items());
    for (const Node& item : buffers) SINTER_TRY(buffer(item, out.buffers.emplace_back()));
    SINTER_LET(steps, node["steps"].items());
    for (const Node& item : steps) SINTER_TRY(step(item, out.steps.emplace_back()));
    return {};
  }

  Program program_;
  std::map<std::string, uint32_t> kernel_ids_;
};

}  // namespace

Result<Program> read_plan(std::string_view text, const std::string& file) {
  const CLocale numbers_with_a_point;
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return fail("not JSON, or cut short", file, "compile the model again");
  SINTER_LET(program, PlanReader().plan(Node(&json, file + "#")));
  if (Status safe = check(program); !safe) {
    Error error = std::move(safe.error());
    error.where = fmt::format("{}: {}", file, error.where);
    error.code = ExitCode::bad_input;
    return tl::make_unexpected(std::move(error));
  }
  return std::move(program);
}

}  // namespace sinter
