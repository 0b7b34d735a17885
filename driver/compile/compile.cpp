#include "driver/compile/compile.h"

#include "codegen/lowering/lower.h"
#include "driver/compile/value_names.h"
#include "driver/shell_word.h"
#include "ir/variants.h"
#include "plan/checker.h"

namespace sinter {
namespace {

std::string entry_names(const Module& module) {
  std::vector<std::string_view> names;
  for (const Entry& entry : module.entries)
    if (names.empty() || names.back() != entry.name) names.push_back(entry.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

using NamePairs = std::vector<std::pair<std::string, std::string>>;

/// Every name of a pair must mean a value of some entry.
Status check_names(const Module& module, const NamePairs& pairs) {
  for (const auto& pair : pairs)
    for (const std::string& name : {pair.first, pair.second})
      if (llvm::none_of(module.entries,
                        [&](const Entry& e) { return named_value(e.graph, name).valid(); }))
        return fail(fmt::format("no value or module is called \"{}\"", printable(name)),
                    module.name, near_value_names(module, name), ExitCode::usage);
  return {};
}

/// The pairs in the names of the graph's values, without pairs of other entries.
NamePairs named_pairs(const Graph& graph, const NamePairs& pairs) {
  NamePairs named;
  for (const auto& [x, y] : pairs) {
    const ValueId a = named_value(graph, x), b = named_value(graph, y);
    if (a.valid() && b.valid()) named.emplace_back(graph[a].name, graph[b].name);
  }
  return named;
}

Status check_required(const NamePairs& required, const Entry& entry, const Fusion& fusion) {
  for (const auto& [x, y] : required) {
    const Verdict verdict = fusion.why(entry.graph.find(x), entry.graph.find(y));
    if (!verdict.accepted())
      return fail(fmt::format("{} and {} must share a kernel but do not: {}", x, y,
                              describe(verdict, entry.graph)),
                  entry.name,
                  fmt::format("without the requirement, `sinter explain {} --why {} {}` says what "
                              "would have to change",
                              kModelWord, shell_word(x), shell_word(y)),
                  ExitCode::check_failed);
  }
  return {};
}

/// The plan says what its orders keep, and no product of it is the library's.
void make_invariant(Program& program) {
  program.invariant = true;
  for (EntryPlan& entry : program.entries)
    for (Step& step : entry.steps)
      visit(
          step, [](KernelStep&) {}, [](GemmStep& gemm) { gemm.ascending = true; }, [](CopyStep&) {},
          [](CollectiveStep&) {});
}

/// Orders for few tokens alone, which a module may state itself, and kernels of which nothing is
/// known.
bool is_variant(const Op& op) {
  const std::optional<Order> order = order_of(op);
  return order == Order::gemv || order == Order::decode_attention || op.kind == OpKind::custom ||
         is_without_order(op, OpKind::quantized_linear);
}

/// Errors: the first op whose results depend on the number of tokens, or on their places: a dropout
/// leaves out weights by their places in the call, and a softmax of composed attention sums over
/// the rows of all sequences in lanes that are counted from row 0.
Status check_invariant(const Module& module) {
  for (const Entry& entry : module.entries)
    for (const Op& op : entry.graph.ops())
      if (op.kind == OpKind::attention_softmax)
        return fail(fmt::format("%{} is attention op by op, whose sums depend on the rows at which "
                                "a sequence lies",
                                printable(op.name)),
                    "entry @" + printable(entry.name),
                    "--invariant needs attention that is one kernel: heads of at most 256 "
                    "elements, scores without a learned bias");
      else if (op.attrs.has(AttrName::dropout))
        return fail(
            fmt::format("%{} has a dropout, which leaves out weights by the places of their "
                        "sequence and token in a call",
                        printable(op.name)),
            "entry @" + printable(entry.name), "compile without --invariant");
      else if (is_variant(op))
        return fail(fmt::format("%{}, a {}, has an order of operations that depends on the number "
                                "of tokens",
                                printable(op.name), op_info(op.kind).name),
                    "entry @" + printable(entry.name),
                    "leave out its order, or compile without --invariant");
  return {};
}

/// Where nothing is fused no rounding is inside a kernel of several ops.
Numerics numerics_of(const CompileOptions& options) {
  return options.fusion.enabled ? options.fusion.numerics : Numerics::strict;
}

}  // namespace

std::string describe(const Verdict& verdict, const Graph& graph) {
  if (verdict.accepted()) return std::string(reason_text(verdict.reason));
  std::string text = fmt::format("{} ({})", reason_text(verdict.reason), reason_id(verdict.reason));
  if (!verdict.detail.empty()) text += ": " + verdict.detail;
  std::vector<std::string_view> path;
  for (ValueId id : verdict.path) path.push_back(graph[id].name);
  if (!path.empty()) text += fmt::format(": {}", fmt::join(path, " → "));
  return text;
}

Status choose_attention(std::string_view text, std::string where, Recipe& recipe) {
  const std::optional<Recipe::Attention> attention = parse_attention(text);
  if (!attention)
    return fail(fmt::format("no such attention: \"{}\"", printable(text)), std::move(where),
                "give tiled, composed or relaxed", ExitCode::usage);
  recipe.attention = *attention;
  return {};
}

Status choose_products(std::string_view text, std::string where, Recipe& recipe) {
  const std::optional<Recipe::Products> products = parse_products(text);
  if (!products)
    return fail(fmt::format("no such products: \"{}\"", printable(text)), std::move(where),
                "give auto, library or own", ExitCode::usage);
  recipe.products = *products;
  return {};
}

Status choose_invariant(std::string_view where, CompileOptions& options) {
  const auto refuse = [&](std::string what, std::string how) -> Status {
    return fail(std::move(what), std::string(where), std::move(how), ExitCode::usage);
  };
  if (options.fusion.enabled && options.fusion.numerics != Numerics::strict)
    return refuse("fast numerics round where fusions are, which depend on the number of tokens",
                  "leave out --numerics fast");
  if (options.recipe.products == Recipe::Products::library)
    return refuse("the order of the library's products depends on the number of tokens",
                  "leave out --products library");
  if (options.recipe.attention == Recipe::Attention::composed)
    return refuse("the sums of composed attention depend on the rows at which a sequence lies",
                  "leave out --attention composed");
  options.recipe.invariant = true;
  return {};
}

Result<DType> parse_dtype_option(std::string_view text) {
  if (const auto dtype = parse_dtype(text); dtype && is_float(*dtype)) return *dtype;
  return fail(fmt::format("no type is called \"{}\"", printable(text)), "--dtype",
              "give fp32, fp16 or bf16", ExitCode::usage);
}

Status check_entry_names(const Module& module, llvm::ArrayRef<std::string> names) {
  for (const std::string& name : names) {
    if (!module.find_entry(name))
      return fail(fmt::format("no entry point is called \"{}\"", printable(name)), module.name,
                  fmt::format("the module has {}", entry_names(module)), ExitCode::usage);
    if (llvm::count(names, name) > 1)
      return fail(fmt::format("entry point \"{}\" is named {} times", printable(name),
                              llvm::count(names, name)),
                  module.name, "name it once", ExitCode::usage);
  }
  return {};
}

std::vector<int64_t> Compiled::sizes_of(size_t entry) const {
  return sizes_in(program->entries[entry].range, program->symbols, sizes);
}

std::string Compiled::title_of(size_t entry) const {
  const EntryPlan& plan = program->entries[entry];
  return entry_title(plan.name, plan.range, program->symbols);
}

Result<Module> freeze(Module module, llvm::ArrayRef<std::string> entries,
                      const PassObserver& observer, const PassOptions& options) {
  SINTER_TRY(check_entry_names(module, entries));
  if (!entries.empty())
    std::erase_if(module.entries,
                  [&](const Entry& e) { return !llvm::is_contained(entries, e.name); });
  run_passes(module, observer, options);
  for (const Entry& entry : module.entries)
    for (const Op& op : entry.graph.ops())
      if (is_without_order(op, OpKind::attention))  // expand_attention left it
        return fail(fmt::format("%{} is an attention of {} that no kernel computes, and its scores "
                                "would have more than 8 axes, or more than 2^48 bytes where the "
                                "symbols are largest, or its dropout counts heads over several "
                                "leading axes of unknown extents",
                                printable(op.name), to_string(op.type, module.symbols)),
                    "entry @" + printable(entry.name), "merge leading axes, or bound the symbols");
  if (options.recipe.invariant) SINTER_TRY(check_invariant(module));
  return module;
}

PassOptions pass_options(const CompileOptions& options) {
  PassOptions result{.device_inputs = options.device_inputs, .recipe = options.recipe};
  const Result<DeviceDescription> device = find_device(options.target);
  result.recipe.has_wgmma = !device || device->has.wgmma;
  if (numerics_of(options) == Numerics::strict) return result;
  if (options.recipe.codes == Recipe::Codes::as_written)
    result.recipe.codes = Recipe::Codes::unrounded;
  // The library's calls apply GELU, too, and the own kernel's epilogue takes float32 sums, whose
  // gain was not measured.
  if (options.recipe.products == Recipe::Products::automatic)
    result.recipe.products = Recipe::Products::library;
  return result;
}

Result<std::shared_ptr<const Program>> plan_with_forms(const Compiled& compiled,
                                                       const CompileOptions& options) {
  SINTER_LET(device, find_device(options.target));
  std::vector<Grouping> groupings;
  for (const Fusion& fusion : compiled.fusions) groupings.push_back(fusion.grouping);
  SINTER_LET(program, lower(compiled.module, groupings, device, numerics_of(options), options.forms,
                            options.device_inputs, options.overwritten));
  if (options.recipe.invariant) make_invariant(program);
  if (Status safe = check(program); !safe)
    return fail("the planner made an unsafe plan: " + safe.error().what, safe.error().where,
                "this is a bug of the compiler", ExitCode::internal_error);
  return std::make_shared<const Program>(std::move(program));
}

Fusion fuse_entry(const Module& frozen, size_t entry, const DeviceDescription& device,
                  const CompileOptions& options) {
  const Graph& graph = frozen.entries[entry].graph;
  const std::vector<Symbol> symbols = narrowed(frozen.symbols, frozen.entries[entry].range);
  FusionOptions fusing = options.fusion;
  fusing.numerics = numerics_of(options);
  fusing.required = named_pairs(graph, options.fusion.required);
  fusing.forbidden = named_pairs(graph, options.fusion.forbidden);
  return fuse(graph, symbols, device, fusing);
}

Result<Compiled> compile(Module frozen, const CompileOptions& options) {
  SINTER_LET(device, find_device(options.target));
  SINTER_TRY(check_names(frozen, options.fusion.required));
  SINTER_TRY(check_names(frozen, options.fusion.forbidden));
  SINTER_LET(sizes, stated_sizes(frozen.symbols, options.sizes));
  Compiled compiled{std::move(frozen), {}, {}, std::move(sizes)};
  CompileOptions numbered = options;  // fusions are numbered through all entries
  for (size_t i = 0; i < compiled.module.entries.size(); ++i) {
    const Entry& entry = compiled.module.entries[i];
    compiled.fusions.push_back(fuse_entry(compiled.module, i, device, numbered));
    numbered.fusion.first_number += compiled.fusions.back().statistics.possible;
    SINTER_TRY(check_required(named_pairs(entry.graph, options.fusion.required), entry,
                              compiled.fusions.back()));
  }
  SINTER_LET(program, plan_with_forms(compiled, options));
  compiled.program = std::move(program);
  return compiled;
}

}  // namespace sinter
