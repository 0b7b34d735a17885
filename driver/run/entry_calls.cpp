#include "driver/run/entry_calls.h"

#include <algorithm>
#include <set>

#include "driver/run/known_sizes.h"
#include "driver/text_table.h"
#include "runtime/random_inputs.h"

namespace sinter {
namespace {

constexpr int64_t kRandomSizes = 19;  // of symbols that nothing tells, beside random inputs

std::string names_of(const Module& module) {
  std::string names;
  for (const Entry& entry : module.entries)
    if (&entry == module.find_entry(entry.name))
      names += fmt::format("{}{}", names.empty() ? "" : ", ", printable(entry.name));
  return names;
}

Result<std::vector<const Entry*>> find_entries(const Model& model,
                                               const std::vector<std::string>& names) {
  std::vector<const Entry*> entries;
  for (const std::string& name : names) {
    const Entry* entry = model.module.find_entry(name);
    if (!entry)
      return fail(fmt::format("no entry point is called \"{}\"", printable(name)), model.origin,
                  fmt::format("the module has {}", names_of(model.module)), ExitCode::usage);
    entries.push_back(entry);
  }
  if (entries.empty())
    for (const Entry& entry : model.module.entries)
      if (entries.empty() || (!model.spec && entry.name != entries.back()->name))
        entries.push_back(&entry);
  if (entries.empty()) return fail("the module has no entry points", model.origin);
  return entries;
}

/// Sizes that the tensors of an entry's inputs tell.
Status bind_inputs(const TensorFile& file, const Entry& entry, KnownSizes& sizes) {
  for (const ValueId id : entry.graph.inputs) {
    const Op& op = entry.graph[id];
    const FileTensor* tensor = tensor_of(file, entry, op.name);
    if (!tensor)
      return fail(fmt::format("there is no tensor \"{}.{}\" or \"{}\" for input %{} of entry {}",
                              printable(entry.name), printable(op.name), printable(op.name),
                              printable(op.name), printable(entry.name)),
                  file.path(), "add it; `sinter run --phase` calls some entries alone");
    if (Status bound = sizes.bind(op.type, *tensor); !bound) {
      bound.error().where = file.path();
      return bound;
    }
  }
  return {};
}

std::set<std::string> input_names(llvm::ArrayRef<const Entry*> entries) {
  std::set<std::string> names;
  for (const Entry* entry : entries)
    for (const ValueId id : entry->graph.inputs) names.insert(entry->graph[id].name);
  return names;
}

}  // namespace

bool CallsOptions::given() const {
  return !entries.empty() || repeat != 1 || !inputs.empty() || seed || !symbols.empty();
}

const FileTensor* tensor_of(const TensorFile& file, const Entry& entry, std::string_view name) {
  const FileTensor* of_entry = file.entry(fmt::format("{}.{}", entry.name, name));
  return of_entry ? of_entry : file.entry(name);
}

Status name_only_tensor(TensorFile& file, const std::set<std::string>& names,
                        std::string_view what) {
  if (!file.is_unnamed()) return {};
  if (names.size() == 1) {
    file.set_name(*names.begin());
    return {};
  }
  std::string list;
  for (const std::string& name : names)
    list += fmt::format("{}{}", list.empty() ? "" : ", ", printable(name, 60));
  return fail(fmt::format("the file has one tensor without a name, there are {}{}{}",
                          counted(names.size(), what), list.empty() ? "" : ": ", list),
              file.path(), "give a .npz with their names: numpy.savez(FILE, NAME=array)");
}

Status refuse_unknown_tensors(const TensorFile& file, const Module& module) {
  std::set<std::string, std::less<>> known;
  for (const Entry& entry : module.entries)
    for (const auto& values : {entry.graph.inputs, entry.graph.outputs})
      for (const ValueId id : values) {
        const std::string& name = entry.graph[id].name;
        known.insert(name);
        known.insert(fmt::format("{}.{}", entry.name, name));
      }
  for (const FileTensor& tensor : file.tensors())
    if (!known.contains(tensor.name))
      return fail(
          fmt::format("tensor \"{}\" is called like no input and no output of the entries",
                      printable(tensor.name)),
          file.path(),
          fmt::format("the module has {}; name tensors ENTRY.VALUE or VALUE", names_of(module)));
  return {};
}

Result<EntryCalls> EntryCalls::open(const Model& model, const CallsOptions& options) {
  EntryCalls calls(model.module);
  calls.repeat_ = static_cast<size_t>(options.repeat);
  calls.seed_ = options.seed.value_or(1);
  SINTER_LET(entries, find_entries(model, options.entries));
  KnownSizes given(model.module);
  SINTER_TRY(given.bind(options.symbols, model.origin));
  if (!options.inputs.empty()) {
    SINTER_LET(file, open_tensor_file(options.inputs));
    SINTER_TRY(name_only_tensor(file, input_names(entries), "input"));
    calls.file_ = std::move(file);
    SINTER_TRY(refuse_unknown_tensors(*calls.file_, model.module));
  }
  std::vector<KnownSizes> sizes;
  for (const Entry* entry : entries) {
    sizes.push_back(given);
    if (calls.file_) SINTER_TRY(bind_inputs(*calls.file_, *entry, sizes.back()));
  }
  SINTER_LET(values, session_sizes(entries, sizes, calls.file_ ? 0 : kRandomSizes));
  for (size_t i = 0; i < entries.size(); ++i)
    calls.list_.push_back({entries[i], std::move(values[i])});
  return calls;
}

Result<std::vector<HostTensor>> EntryCalls::inputs(size_t number) const {
  const Call& call = (*this)[number];
  const Graph& graph = call.entry->graph;
  if (!file_) {
    constexpr uint64_t kGolden = 0x9E3779B97F4A7C15u;  // call 0 has the seed itself
    return random_inputs(graph, module_->symbols, call.symbol_values, seed_ ^ (number * kGolden));
  }
  std::vector<HostTensor> inputs;
  for (const ValueId id : graph.inputs) {
    const FileTensor& tensor = *tensor_of(*file_, *call.entry, graph[id].name);
    SINTER_LET(input, make_tensor(graph[id].type.dtype, tensor.dims));
    SINTER_TRY(file_->read(tensor.name, input.bytes));
    inputs.push_back(std::move(input));
  }
  return inputs;
}

std::string EntryCalls::result_name(const Entry& entry, std::string_view value) const {
  const bool several =
      llvm::any_of(list_, [&](const Call& call) { return call.entry != list_.front().entry; });
  return several ? fmt::format("{}.{}", entry.name, value) : std::string(value);
}

}  // namespace sinter
