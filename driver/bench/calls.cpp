#include "driver/bench/calls.h"

#include <algorithm>

#include "runtime/random_inputs.h"

namespace sinter {

Result<HostTensor> read_output(const CudaCall& call, size_t index, const CudaStream& stream) {
  const TensorType& type = call.entry->buffers[call.entry->outputs[index]].type;
  SINTER_LET(tensor, make_tensor(type.dtype, concrete_dims(type, call.symbol_values)));
  SINTER_TRY(stream.copy_to_host(tensor.bytes, call.output(index)));
  SINTER_TRY(stream.synchronize("reading an output"));
  return std::move(tensor);
}

Result<InputSets> InputSets::create(CudaDevicePtr device, llvm::ArrayRef<HostTensor> inputs,
                                    int64_t count) {
  InputSets sets;
  for (const HostTensor& input : inputs) {
    sets.offsets_.push_back(sets.stride_);
    sets.stride_ += aligned_bytes(std::max<size_t>(input.bytes.size(), 1));
  }
  if (inputs.empty()) return sets;
  const auto all = static_cast<size_t>(count);
  SINTER_LET(memory, CudaMemory::allocate(device, sets.stride_ * all, "the inputs"));
  sets.memory_ = std::move(memory);
  SINTER_LET(stream, CudaStream::create(std::move(device)));
  const CudaAddress begin = sets.memory_.address();
  for (size_t i = 0; i < inputs.size(); ++i)
    SINTER_TRY(stream.copy_to_device(begin + sets.offsets_[i], inputs[i].bytes));
  for (size_t done = 1, more = 0; done < all; done += more) {
    more = std::min(done, all - done);
    SINTER_TRY(stream.copy_on_device(begin + done * sets.stride_, begin, more * sets.stride_));
  }
  SINTER_TRY(stream.synchronize("uploading the inputs"));
  return sets;
}

std::vector<CudaAddress> InputSets::addresses(size_t set) const {
  std::vector<CudaAddress> result;
  for (size_t offset : offsets_) result.push_back(memory_.address() + set * stride_ + offset);
  return result;
}

Result<RecordedCalls> RecordedCalls::create(const std::shared_ptr<const CudaExecutable>& executable,
                                            const EntryCall& call, const InputSets& inputs) {
  RecordedCalls recorded;
  SINTER_TRY(recorded.place(executable, call, inputs));
  const CudaStream& stream = recorded.stream();
  SINTER_TRY(stream.synchronize("filling the arenas and states"));
  const auto enqueue = [&]() -> Status {
    for (int64_t round = 0; round < call.rounds; ++round)
      for (size_t set = 0; set < recorded.calls_.size(); ++set)
        SINTER_TRY(recorded.session(set).enqueue(recorded.calls_[set], stream));
    return {};
  };
  SINTER_LET(graph, CudaGraph::record(stream, enqueue));
  recorded.graph_ = std::move(graph);
  SINTER_LET(watch, Stopwatch::create(executable->cuda_device()));
  recorded.watch_ = std::move(watch);
  return recorded;
}

Result<Stopwatch::Times> RecordedCalls::run() {
  SINTER_TRY(watch_.start(stream()));
  SINTER_TRY(graph_.launch(stream()));
  return watch_.stop(stream());
}

Result<HostTensor> RecordedCalls::output(size_t index) const {
  return read_output(calls_.back(), index, stream());
}

const CudaSession& RecordedCalls::session(size_t set) const {
  return *sessions_[std::min(set, sessions_.size() - 1)];
}

Status RecordedCalls::place(const std::shared_ptr<const CudaExecutable>& executable,
                            const EntryCall& call, const InputSets& inputs) {
  const auto sets = static_cast<size_t>(call.sets);
  for (size_t i = 0; i < (executable->program().states.empty() ? 1 : sets); ++i) {
    SINTER_LET(session, CudaSession::create(executable, call.sizes));
    sessions_.push_back(std::move(session));
  }
  SINTER_LET(arena, sessions_[0]->arena_bytes(call.name, call.sizes));
  const size_t stride = aligned_bytes(std::max<size_t>(arena, 1));
  SINTER_LET(arenas, CudaMemory::allocate(executable->cuda_device(), stride * sets, "the arenas"));
  arenas_ = std::move(arenas);
  SINTER_TRY(stream().fill(arenas_.address(), kPoison, arenas_.bytes()));
  for (size_t set = 0; set < sets; ++set) {
    SINTER_LET(placed, session(set).place(call.name, call.sizes, inputs.addresses(set),
                                          arenas_.address() + set * stride));
    SINTER_TRY(session(set).prepare(placed));
    SINTER_TRY(fill_states(placed, call.seed));
    calls_.push_back(std::move(placed));
  }
  return {};
}

Status RecordedCalls::fill_states(const CudaCall& call, uint64_t seed) const {
  for (size_t id = 0; id < call.entry->buffers.size(); ++id) {
    const Buffer& buffer = call.entry->buffers[id];
    if (buffer.place != Buffer::Place::state || buffer.version > 0) continue;
    const std::vector<int64_t> dims = concrete_dims(buffer.type, call.symbol_values);
    SINTER_LET(tensor, random_tensor(buffer.type.dtype, dims, seed + buffer.index));
    SINTER_TRY(stream().copy_to_device(call.addresses[id], tensor.bytes));
    SINTER_TRY(stream().synchronize("filling a state"));
  }
  return {};
}

}  // namespace sinter
