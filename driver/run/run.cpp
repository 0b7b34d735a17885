#include "driver/run/run.h"

#include <llvm/ADT/STLExtras.h>

#include "driver/generate/decoder.h"
#include "frontends/files/safetensors.h"

namespace sinter {
namespace {

/// A value that is inside a kernel of the plan has no buffer to keep.
Status check_keep(const EntryPlan& entry, const std::vector<std::string>& keep) {
  for (const std::string& name : keep)
    if (llvm::none_of(entry.buffers, [&](const Buffer& buffer) { return buffer.value == name; }))
      return fail(fmt::format("%{} is not stored by this plan", printable(name)), entry.name,
                  "check the name with `sinter explain`; --no-fuse stores every value",
                  ExitCode::usage);
  return {};
}

std::vector<NamedHostTensor> name_results(const EntryPlan& entry, RunResult&& result) {
  std::vector<NamedHostTensor> named;
  // An output that the entry lists twice is one result.
  for (size_t i = 0; i < result.outputs.size(); ++i)
    if (const std::string& name = entry.output_names[i];
        llvm::none_of(named, [&](const NamedHostTensor& one) { return one.name == name; }))
      named.push_back({name, std::move(result.outputs[i])});
  for (auto& [name, tensor] : result.kept) named.push_back({name, std::move(tensor)});
  return named;
}

/// Sets the symbols of `type` from the extents of a tensor that is given for it.
Status bind_dims(const TensorType& type, const FileTensor& tensor, llvm::ArrayRef<Symbol> symbols,
                 std::vector<std::optional<int64_t>>& values) {
  const auto mismatch = [&] {
    return fail(fmt::format("tensor {} is {} [{}], the input is {}", printable(tensor.name),
                            to_string(tensor.dtype), fmt::join(tensor.dims, ", "),
                            to_string(type, symbols)));
  };
  if (tensor.dims.size() != type.rank() || to_dtype(tensor.dtype) != type.dtype) return mismatch();
  for (size_t i = 0; i < type.rank(); ++i) {
    if (type.dims[i].is_constant()) {
      if (type.dims[i].constant() != tensor.dims[i]) return mismatch();
      continue;
    }
    std::optional<int64_t>& value = values[type.dims[i].symbol().index];
    if (value && *value != tensor.dims[i])
      return fail(fmt::format("tensor {}: symbol {} is {} here and {} elsewhere",
                              printable(tensor.name), to_string(type.dims[i], symbols),
                              tensor.dims[i], *value));
    value = tensor.dims[i];
  }
  return {};
}

}  // namespace

Result<TokenRun> run_tokens(const LoadedModel& model, const std::vector<int32_t>& tokens,
                            int64_t more, const RunOptions& options) {
  SINTER_TRY(check_tokens(model, tokens));
  const int64_t length = text_tokens(tokens.size(), more);
  if (length > model.spec->max_positions)
    return fail(fmt::format("{} tokens and {} more, the model has {} positions", tokens.size(),
                            more, model.spec->max_positions),
                model.origin);
  SINTER_LET(loaded, make_ready(model, options.compile, *options.backend));
  const EntryPlan& entry = *loaded.compiled.program->find_entry("prefill");
  SINTER_TRY(check_keep(entry, options.keep));
  SINTER_LET(decoder, Decoder::create(loaded.model, 1, length));
  SINTER_LET(first, decoder.prefill({tokens}, {.keep = options.keep}));
  TokenRun run;
  HostTensor logits = first.outputs[0];
  for (int64_t i = 0; i < more; ++i) {
    if (i > 0) {
      SINTER_LET(next, decoder.decode({run.tokens.back()}));
      logits = std::move(next.outputs[0]);
    }
    run.tokens.push_back(greedy_token(logits, logits.dims[0] - 1));
  }
  run.values = name_results(entry, std::move(first));
  return run;
}

Result<std::vector<NamedHostTensor>> run_inputs(const LoadedModel& model,
                                                const std::string& entry_name,
                                                const std::string& path,
                                                const RunOptions& options) {
  SINTER_LET(file, SafetensorsFile::open(path));
  SINTER_LET(loaded, make_ready(model, options.compile, *options.backend));
  const Entry* entry = loaded.compiled.module.find_entry(entry_name);
  if (!entry)
    return fail(fmt::format("no entry point is called \"{}\"", printable(entry_name)), model.origin,
                "", ExitCode::usage);
  const EntryPlan& plan = *loaded.compiled.program->find_entry(entry_name);
  SINTER_TRY(check_keep(plan, options.keep));
  const llvm::ArrayRef<Symbol> symbols = loaded.compiled.module.symbols;
  std::vector<std::optional<int64_t>> known(symbols.size());
  for (const auto& [name, value] : options.symbols) {
    const auto at =
        llvm::find_if(symbols, [&](const Symbol& symbol) { return symbol.name == name; });
    if (at == symbols.end())
      return fail(fmt::format("no symbol is called \"{}\"", printable(name)), model.origin, "",
                  ExitCode::usage);
    known[at - symbols.begin()] = value;
  }
  std::vector<HostTensor> inputs;
  for (ValueId id : entry->graph.inputs) {
    const Op& op = entry->graph[id];
    const FileTensor* given = file.entry(op.name);
    if (!given)
      return fail(
          fmt::format("there is no tensor \"{}\" for the input of that name", printable(op.name)),
          path);
    if (Status bound = bind_dims(op.type, *given, symbols, known); !bound) {
      bound.error().where = path;
      return tl::make_unexpected(bound.error());
    }
    SINTER_LET(input, make_tensor(op.type.dtype, given->dims));
    SINTER_TRY(file.read(op.name, input.bytes));
    inputs.push_back(std::move(input));
  }
  std::vector<int64_t> values = min_symbol_values(symbols);
  for (size_t i = 0; i < values.size(); ++i) values[i] = known[i].value_or(values[i]);
  SINTER_LET(session, loaded.model->new_session(values));
  SINTER_LET(result,
             session->run(entry_name, values, addresses_of(inputs), {.keep = options.keep}));
  return name_results(plan, std::move(result));
}

Status write_tensors(const std::string& path, llvm::ArrayRef<NamedHostTensor> tensors) {
  std::vector<NamedTensor> named;
  for (const NamedHostTensor& item : tensors)
    named.push_back(
        {item.name, to_file_dtype(item.tensor.dtype), item.tensor.dims, item.tensor.bytes});
  return write_safetensors(path, named);
}

}  // namespace sinter
