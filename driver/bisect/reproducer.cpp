#include "driver/bisect/reproducer.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "driver/bisect/reproducer_folder.h"
#include "driver/reduce/steps.h"
#include "driver/shell_word.h"
#include "driver/temporary_folder.h"
#include "driver/text_file.h"
#include "frontends/files/tensor_file.h"
#include "ir/op_roles.h"
#include "ir/text.h"
#include "ir/variants.h"
#include "ir/verifier.h"

namespace sinter {
namespace {

/// Copies ops of a frozen graph with what they read.
class Extraction {
 public:
  Extraction(const Module& frozen, size_t entry, llvm::ArrayRef<ValueId> members)
      : frozen_(frozen), from_(frozen.entries[entry]), members_(members.begin(), members.end()) {
    made_.module.name = "reproducer";
    made_.module.symbols = narrowed(frozen.symbols, from_.range);
    made_.module.entries.push_back({from_.name, {}, {}, from_.tokens, {}});
    for (const ValueId member : members)
      if (writes_state(graph()[member]))
        written_.insert(operand_with(graph()[member], OperandRole::state));
  }

  /// Values of other ops and inputs of the entry, which become inputs.
  const std::vector<ValueId>& outside() const { return outside_; }
  KernelModule take() { return std::move(made_); }

  Status run(const Executable& executable, const PlanRuns& runs, size_t call) {
    copied_.assign(graph().size(), {});
    Graph& own = made_.module.entries[0].graph;
    for (const ValueId member : members_) add(member);
    const auto users = graph().users();
    std::set<ValueId> outputs(graph().outputs.begin(), graph().outputs.end());
    for (const ValueId member : members_) {
      if (writes_state(graph()[member])) continue;
      // Members that something else reads, through views or not.
      if (outputs.contains(member) || read_elsewhere(member, users))
        own.outputs.push_back(copied_[member.index]);
    }
    if (own.outputs.empty())
      for (const ValueId member : members_) own.outputs = {copied_[member.index]};
    return fill(executable, runs, call);
  }

 private:
  const Graph& graph() const { return from_.graph; }

  bool read_elsewhere(ValueId value,
                      const std::vector<llvm::SmallVector<ValueId, 2>>& users) const {
    return llvm::any_of(users[value.index], [&](ValueId user) {
      if (members_.contains(user)) return false;
      return op_class(graph()[user]) != OpClass::view || read_elsewhere(user, users) ||
             llvm::is_contained(graph().outputs, user);
    });
  }

  /// The op in the module's entry: a member, or what members read.
  ValueId add(ValueId id) {
    if (copied_[id.index].valid()) return copied_[id.index];
    const Op& op = graph()[id];
    Op copy = op;
    const bool is_outside = computes(op) && !members_.contains(id);
    const bool is_read_state = op.kind == OpKind::state && !written_.contains(id);
    if (op.kind == OpKind::input || is_read_state || is_outside) {
      copy = Op{OpKind::input, op.type, {}, {}, op.name};
      outside_.push_back(id);
    } else {
      for (ValueId& operand : copy.operands) operand = add(operand);
    }
    Graph& own = made_.module.entries[0].graph;
    const ValueId added = own.add(std::move(copy));
    if (own[added].kind == OpKind::input) own.inputs.push_back(added);
    return copied_[id.index] = added;
  }

  Status fill(const Executable& executable, const PlanRuns& runs, size_t call) {
    std::vector<std::string> keep;
    for (const ValueId id : outside_)
      if (computes(graph()[id]) && !writes_state(graph()[id])) keep.push_back(graph()[id].name);
    SINTER_LET(captured, runs.capture(executable, call, keep));
    const auto named = [](const auto& list, const std::string& name) -> const HostTensor* {
      for (const auto& [other, tensor] : list)
        if (other == name) return &tensor;
      return nullptr;
    };
    const std::string prefix = from_.name + ".";
    for (const ValueId id : outside_) {
      const Op& op = graph()[id];
      const HostTensor* value = named(captured.values, op.name);
      if (op.kind == OpKind::input) value = &runs.calls()[call].inputs[input_index(id)];
      if (is_state_version(op)) value = named(captured.states, state_of(id));
      SINTER_CHECK(value, "{}", op.name);
      made_.inputs.emplace_back(prefix + op.name, *value);
    }
    const Program& program = executable.program();
    for (const Op& op : made_.module.entries[0].graph.ops()) {
      if (op.kind != OpKind::weight) continue;
      for (size_t i = 0; i < program.weights.size(); ++i) {
        if (program.weights[i].name != op.name) continue;
        SINTER_LET(value, executable.read_weight(i));
        made_.weights.emplace_back(op.name, std::move(value));
      }
      Op file{OpKind::file, op.type, {}, {}, op.name};
      file.attrs.set(AttrName::dims, op.type.dims)
          .set(AttrName::dtype, op.type.dtype)
          .set(AttrName::tensor, op.name);
      Weight weight{op.name, op.type, {}};
      weight.init.outputs.push_back(weight.init.add(std::move(file)));
      if (!made_.module.find_weight(op.name)) made_.module.weights.push_back(std::move(weight));
    }
    add_states(captured);
    name_sizes(runs.calls()[call].symbol_values);
    return {};
  }

  size_t input_index(ValueId id) const {
    for (size_t i = 0; i < graph().inputs.size(); ++i)
      if (graph().inputs[i] == id) return i;
    SINTER_CHECK(false, "{}", graph()[id].name);
  }

  std::string state_of(ValueId id) const {
    while (writes_state(graph()[id])) id = operand_with(graph()[id], OperandRole::state);
    return graph()[id].name;
  }

  /// States begin as zeros: an entry before the kernel's stores their values.
  void add_states(const PlanRuns::Captured& captured) {
    Entry fill{"fill", {}, {}, Tokens::any, {}};
    for (const Op& op : made_.module.entries[0].graph.ops()) {
      if (op.kind != OpKind::state || made_.module.find_state(op.name)) continue;
      made_.module.states.push_back({op.name, op.type});
      for (const auto& [name, tensor] : captured.states) {
        if (name != op.name) continue;
        Graph& graph = fill.graph;
        const ValueId value = graph.add(Op{OpKind::input, op.type, {}, {}, name + ".before"});
        graph.inputs.push_back(value);
        const ValueId state = graph.add(Op{OpKind::state, op.type, {}, {}, name});
        graph.outputs.push_back(
            graph.add(Op{OpKind::store, op.type, {state, value}, {}, name + ".after"}));
        made_.inputs.emplace_back("fill." + name + ".before", tensor);
      }
    }
    if (!made_.module.states.empty())
      made_.module.entries.insert(made_.module.entries.begin(), std::move(fill));
  }

  /// Symbols that no input's type has, without those that nothing uses.
  void name_sizes(llvm::ArrayRef<int64_t> values) {
    std::vector<int64_t> known(values.begin(), values.end());
    Reducible smaller{std::move(made_.module), std::move(known)};
    for (size_t i = smaller.module.symbols.size(); i-- > 0;)
      if (auto without = reduction::without_symbol(smaller, static_cast<uint32_t>(i)))
        smaller = std::move(*without);
    made_.module = std::move(smaller.module);
    std::set<Dim> told;
    for (const Entry& entry : made_.module.entries)
      for (const ValueId id : entry.graph.inputs)
        told.insert(entry.graph[id].type.dims.begin(), entry.graph[id].type.dims.end());
    for (uint32_t i = 0; i < made_.module.symbols.size(); ++i)
      if (!told.contains(Dim(SymbolId{i})))
        made_.sizes.push_back(
            fmt::format("{}={}", made_.module.symbols[i].name, smaller.symbol_values[i]));
  }

  const Module& frozen_;
  const Entry& from_;
  std::set<ValueId> members_, written_;  // written: states
  KernelModule made_;
  std::vector<ValueId> copied_;  // by value of the frozen graph
  std::vector<ValueId> outside_;
};

Status write_tensors_of(const std::string& path,
                        llvm::ArrayRef<std::pair<std::string, HostTensor>> tensors) {
  std::vector<NamedTensor> named;
  for (const auto& [name, tensor] : tensors)
    named.push_back({name, to_file_dtype(tensor.dtype), tensor.dims, tensor.bytes});
  return write_tensor_file(path, named);
}

uint64_t bytes_of(llvm::ArrayRef<std::pair<std::string, HostTensor>> tensors) {
  uint64_t bytes = 0;
  for (const auto& [name, tensor] : tensors) bytes += tensor.bytes.size();
  return bytes;
}

}  // namespace

Result<KernelModule> kernel_module(const Module& frozen, size_t entry,
                                   llvm::ArrayRef<ValueId> members, const PlanJudge& judge,
                                   size_t call) {
  Extraction extraction(frozen, entry, members);
  SINTER_TRY(extraction.run(judge.unfused(), judge.runs(), call));
  KernelModule kernel = extraction.take();
  if (Status valid = verify(kernel.module); !valid)
    return fail("the kernels make no module of their own: " + valid.error().what,
                valid.error().where, {}, ExitCode::internal_error);
  return kernel;
}

Result<Reproducer> write_reproducer(const std::string& folder, const KernelModule& kernel,
                                    const GuiltyFusions& guilty, const BisectOptions& options,
                                    uint64_t model_weight_bytes, int64_t runs) {
  SINTER_TRY(check_reproducer_folder(folder));
  const std::filesystem::path target = real_path(folder);
  SINTER_LET(temporary, TemporaryFolder::beside(target));
  const std::filesystem::path root = temporary.path();
  const std::string module = (root / "model.sir").string(),
                    inputs = (root / "inputs.safetensors").string(),
                    weights = (root / "model.safetensors").string();
  SINTER_TRY(write_text(module, print_module(kernel.module)));
  if (!kernel.inputs.empty()) SINTER_TRY(write_tensors_of(inputs, kernel.inputs));
  if (!kernel.weights.empty()) SINTER_TRY(write_tensors_of(weights, kernel.weights));

  Reproducer made;
  made.folder = folder;
  made.input_bytes = bytes_of(kernel.inputs);
  made.weight_bytes = bytes_of(kernel.weights);
  made.model_weight_bytes = model_weight_bytes;
  made.command = "sinter bisect model.sir --output ''";
  if (!kernel.inputs.empty()) made.command += " --inputs inputs.safetensors";
  if (!kernel.weights.empty()) made.command += " --weights model.safetensors";
  for (const std::string& size : kernel.sizes) made.command += " --symbol " + shell_word(size);
  made.command += options.backend->on_gpu() ? " --device cuda" : " --device cpu";
  const CompileOptions& compiled = options.compile;
  if (!options.backend->on_gpu() && compiled.target != CompileOptions().target)
    made.command += " --arch " + shell_word(compiled.target);
  const Recipe &recipe = compiled.recipe, usual;
  if (recipe.products != usual.products)
    made.command += fmt::format(" --products {}", to_string(recipe.products));
  if (recipe.invariant) made.command += " --invariant";
  if (recipe.attention != usual.attention)
    made.command += fmt::format(" --attention {}", to_string(recipe.attention));
  if (compiled.fusion.numerics == Numerics::fast) made.command += " --numerics fast";
  if (options.slower_than) made.command += fmt::format(" --slower-than {}", *options.slower_than);

  // The module as the command runs it.
  OpenOptions open;
  if (!kernel.weights.empty()) open.weights = weights;
  SINTER_LET(model, open_model(module, open));
  BisectOptions alone;
  alone.backend = options.backend;
  alone.compile = options.compile;
  alone.compile.fusion = {};
  alone.compile.fusion.numerics = compiled.fusion.numerics;
  alone.compile.entries.clear();
  alone.planted = options.planted;
  alone.slower_than = options.slower_than;
  if (!kernel.inputs.empty()) alone.runs.calls.inputs = inputs;
  for (const std::string& size : kernel.sizes) {
    const size_t equals = size.find('=');
    alone.runs.calls.symbols.emplace_back(size.substr(0, equals),
                                          std::stoll(size.substr(equals + 1)));
  }
  SINTER_LET(judge, PlanJudge::create(model, alone));
  SINTER_LET(found, judge->difference({}, runs));
  made.fails = found.first.has_value() || !found.second.empty();
  made.difference = found.first ? to_string(*found.first) : found.second;

  SINTER_TRY(
      write_text((root / "reproduce.sh").string(),
                 "#!/bin/sh\n# Compares the fused with the unfused plan of the kernels; "
                 "exit status 3: the fused one is wrong.\ncd \"$(dirname \"$0\")\" && exec " +
                     made.command + "\n"));
  std::error_code error;
  std::filesystem::permissions(root / "reproduce.sh", std::filesystem::perms::owner_exec,
                               std::filesystem::perm_options::add, error);
  nlohmann::ordered_json about;
  about["sinter"] = SINTER_VERSION;
  about["device"] = options.backend->name();
  about["target"] = judge->fused().program->target;
  about["command"] = made.command;
  about["fusions"] = nlohmann::ordered_json::array();
  for (const NumberedFusion& fusion : guilty.fusions)
    about["fusions"].push_back({{"number", fusion.number},
                                {"entry", printable(fusion.title)},
                                {"a", printable(fusion.a)},
                                {"b", printable(fusion.b)}});
  about["fails_alone"] = made.fails;
  about["difference"] = printable(made.difference, 1000);
  about["input_bytes"] = made.input_bytes;
  about["weight_bytes"] = made.weight_bytes;
  about["model_weight_bytes"] = model_weight_bytes;
  SINTER_TRY(write_text((root / "about.json").string(), about.dump(2) + "\n"));
  SINTER_TRY(temporary.put_at(target));
  return made;
}

}  // namespace sinter
