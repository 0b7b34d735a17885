#include "driver/run/run.h"

#include <llvm/ADT/STLExtras.h>

#include <map>

#include "driver/compile/value_names.h"
#include "driver/generate/decoder.h"
#include "driver/text_table.h"
#include "frontends/files/tensor_file.h"
#include "ir/variants.h"

namespace sinter {
namespace {

bool stores(const EntryPlan& entry, std::string_view value) {
  return llvm::any_of(entry.buffers, [&](const Buffer& buffer) { return buffer.value == value; });
}

/// The value of the plan that a person means by a name.
std::string named_in(const EntryPlan& entry, const std::string& name) {
  std::vector<llvm::StringRef> names;
  for (const Step& step : entry.steps) llvm::append_range(names, step.values);
  const auto at = stores(entry, name) ? std::nullopt : find_named(names, name);
  return at ? names[*at].str() : name;
}

/// The values of the entry that are to be kept, of those that it stores.
std::vector<std::string> kept_by(const EntryPlan& entry, const std::vector<std::string>& keep) {
  std::vector<std::string> kept;
  for (const std::string& name : keep)
    if (std::string value = named_in(entry, name); stores(entry, value))
      kept.push_back(std::move(value));
  return kept;
}

/// A value that is inside a kernel of the plan has no buffer to keep. `place`: what was called.
Status check_keep(llvm::ArrayRef<const EntryPlan*> entries, const std::vector<std::string>& keep,
                  const std::string& place) {
  for (const std::string& name : keep)
    if (llvm::all_of(entries,
                     [&](const EntryPlan* entry) { return kept_by(*entry, {name}).empty(); }))
      return fail(fmt::format("%{} is not stored by this plan",
                              printable(named_in(*entries.front(), name))),
                  place, "check the name with `sinter explain`; --no-fuse stores every value",
                  ExitCode::usage);
  return {};
}

std::vector<NamedHostTensor> name_results(const EntryPlan& entry, RunResult&& result) {
  std::vector<NamedHostTensor> named;
  // An output that the entry lists twice, or that is kept too, is one result.
  const auto add = [&](const std::string& name, HostTensor& tensor) {
    if (llvm::none_of(named, [&](const NamedHostTensor& one) { return one.name == name; }))
      named.push_back({name, std::move(tensor)});
  };
  for (size_t i = 0; i < result.outputs.size(); ++i) add(entry.output_names[i], result.outputs[i]);
  for (auto& [name, tensor] : result.kept) add(name, tensor);
  return named;
}

}  // namespace

Result<TokenRun> run_tokens(const OpenedModel& model, const std::vector<int32_t>& tokens,
                            int64_t more, const RunOptions& options) {
  SINTER_TRY(check_tokens(model, tokens));
  const int64_t length = text_tokens(tokens.size(), more);
  if (length > model.spec->max_positions)
    return fail(
        fmt::format("{} and {} more, the model has {}", counted(tokens.size(), "token"), more,
                    counted(static_cast<uint64_t>(model.spec->max_positions), "position")),
        model.origin);
  SINTER_LET(loaded, make_ready(model, options.compile, *options.backend));
  const EntryPlan& entry = *loaded.compiled.program->find_entry("prefill");
  SINTER_TRY(check_keep({&entry}, options.keep, entry.name));
  SINTER_LET(decoder, Decoder::create(loaded.executable, 1, length));
  SINTER_LET(first, decoder.prefill({tokens}, {.keep = kept_by(entry, options.keep)}));
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

Result<std::vector<NamedHostTensor>> run_inputs(const OpenedModel& model,
                                                const CallsOptions& options,
                                                const RunOptions& run) {
  SINTER_LET(calls, EntryCalls::open(model, options));
  SINTER_LET(loaded, make_ready(model, run.compile, *run.backend));
  std::vector<const EntryPlan*> plans;  // of each call of the list
  for (size_t i = 0; i < calls.list_size(); ++i)
    plans.push_back(variant_for(loaded.compiled.program->entries, calls[i].entry->name,
                                calls[i].symbol_values));
  SINTER_TRY(check_keep(plans, run.keep, plans.front()->name));

  SINTER_LET(session, loaded.executable->new_session(calls.session_values()));
  std::map<const EntryPlan*, RunResult> last;
  for (size_t i = 0; i < calls.count(); ++i) {
    const EntryPlan& plan = *plans[i % plans.size()];
    CallOptions call;
    call.ranks = options.ranks;
    call.rank = options.rank;
    if (calls.is_last(i)) call.keep = kept_by(plan, run.keep);
    SINTER_LET(inputs, calls.inputs(i));
    SINTER_LET(result, session->run(plan.name, calls[i].symbol_values, addresses_of(inputs), call));
    if (calls.is_last(i)) last[&plan] = std::move(result);
  }
  std::vector<NamedHostTensor> named;
  for (size_t i = 0; i < plans.size(); ++i) {
    const auto at = last.find(plans[i]);
    if (at == last.end()) continue;  // the entry stands in the list before
    for (NamedHostTensor& value : name_results(*plans[i], std::move(at->second)))
      named.push_back({calls.result_name(*calls[i].entry, value.name), std::move(value.tensor)});
    last.erase(at);
  }
  return named;
}

Status write_tensors(const std::string& path, llvm::ArrayRef<NamedHostTensor> tensors) {
  std::vector<NamedTensor> named;
  for (const NamedHostTensor& item : tensors)
    named.push_back(
        {item.name, to_file_dtype(item.tensor.dtype), item.tensor.dims, item.tensor.bytes});
  return write_tensor_file(path, named);
}

}  // namespace sinter
