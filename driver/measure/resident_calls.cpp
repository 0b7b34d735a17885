#include "driver/measure/resident_calls.h"

#include <algorithm>

#include "ir/variants.h"

namespace sinter {
namespace {

/// Where the inputs of `entry` stand: from `at` on those that the call brings, in the order of
/// their names, and results of `before` for the others.
Result<std::vector<CudaAddress>> input_addresses(const EntryPlan& entry, const ResidentCall& call,
                                                 CudaAddress at, const CudaCall* before) {
  std::map<std::string, CudaAddress, std::less<>> known;
  if (before != nullptr)
    for (size_t i = 0; i < before->entry->outputs.size(); ++i)
      known[before->entry->output_names[i]] = before->output(i);
  for (const auto& [name, tensor] : call.inputs) {
    known[name] = at;
    at += aligned_bytes(tensor.bytes.size());
  }
  std::vector<CudaAddress> addresses;
  for (uint32_t id : entry.inputs) {
    const auto found = known.find(entry.buffers[id].value);
    if (found == known.end())
      return fail(fmt::format("nothing gives the input %{}", printable(entry.buffers[id].value)),
                  "entry " + printable(entry.name));
    addresses.push_back(found->second);
  }
  return addresses;
}

size_t input_bytes(const ResidentCall& call) {
  size_t bytes = 0;
  for (const auto& [name, tensor] : call.inputs) bytes += aligned_bytes(tensor.bytes.size());
  return bytes;
}

}  // namespace

ResidentCall resident_call(const Program& program, std::string entry,
                           std::vector<int64_t> symbol_values, std::vector<HostTensor> inputs) {
  const EntryPlan* plan = variant_for(program.entries, entry, symbol_values);
  SINTER_CHECK(plan && plan->inputs.size() == inputs.size(), "the entry {} takes other inputs",
               entry);
  ResidentCall call{std::move(entry), std::move(symbol_values), {}};
  for (size_t i = 0; i < inputs.size(); ++i)
    call.inputs[plan->buffers[plan->inputs[i]].value] = std::move(inputs[i]);
  return call;
}

Result<ResidentCalls> ResidentCalls::create(std::unique_ptr<Session> owned,
                                            const std::vector<ResidentCall>& calls) {
  ResidentCalls result;
  SINTER_CHECK(owned->on_cuda(), "calls reside on a GPU");
  result.session_ = std::move(owned);
  const CudaSession& session = result.session();
  std::vector<const EntryPlan*> entries;
  bool apart = false;  // an arena each
  std::vector<size_t> arenas;
  size_t inputs_bytes = 0, largest = 0, all = 0;
  for (const ResidentCall& call : calls) {
    entries.push_back(
        variant_for(session.executable().program().entries, call.entry, call.symbol_values));
    SINTER_CHECK(entries.back(), "no entry {}", call.entry);
    apart |= llvm::any_of(entries.back()->inputs, [&](uint32_t id) {
      return !call.inputs.contains(entries.back()->buffers[id].value);
    });
    SINTER_LET(bytes, session.arena_bytes(call.entry, call.symbol_values));
    arenas.push_back(aligned_bytes(bytes));
    inputs_bytes += input_bytes(call);
    largest = std::max(largest, arenas.back());
    all += arenas.back();
  }
  const size_t arena_bytes = apart ? all : largest;
  SINTER_LET(memory, CudaMemory::allocate(session.executable().cuda_device(),
                                          std::max<size_t>(arena_bytes + inputs_bytes, 1),
                                          "inputs and arenas"));
  result.memory_ = std::move(memory);
  CudaAddress arena = result.memory_.address(), at = arena + arena_bytes;
  for (size_t i = 0; i < calls.size(); ++i) {
    const EntryPlan* entry = entries[i];
    SINTER_LET(inputs,
               input_addresses(*entry, calls[i], at, i > 0 ? &result.calls_.back() : nullptr));
    for (const auto& [name, tensor] : calls[i].inputs) {
      SINTER_TRY(session.stream().copy_to_device(at, tensor.bytes));
      at += aligned_bytes(tensor.bytes.size());
    }
    SINTER_LET(placed, session.place(calls[i].entry, calls[i].symbol_values, inputs, arena));
    if (apart) arena += arenas[i];
    SINTER_TRY(session.prepare(placed));
    result.calls_.push_back(std::move(placed));
  }
  SINTER_TRY(session.stream().synchronize("uploading inputs"));
  return result;
}

size_t ResidentCalls::steps() const {
  size_t count = 0;
  for (const CudaCall& call : calls_) count += call.entry->steps.size();
  return count;
}

Status ResidentCalls::enqueue_step(size_t index) const {
  SINTER_TRY(session().executable().cuda_device()->make_current());
  for (const CudaCall& call : calls_) {
    if (index < call.entry->steps.size())
      return in_step(session().enqueue_step(call, index, stream()), *call.entry, index);
    index -= call.entry->steps.size();
  }
  return fail(fmt::format("no step {}", index), {}, {}, ExitCode::internal_error);
}

Status ResidentCalls::enqueue() const {
  for (const CudaCall& call : calls_) SINTER_TRY(session().enqueue(call, stream()));
  return {};
}

Result<CudaGraph> ResidentCalls::record() const {
  SINTER_TRY(enqueue());
  SINTER_TRY(stream().synchronize("the first run"));
  return CudaGraph::record(stream(), [&] { return enqueue(); });
}

}  // namespace sinter
