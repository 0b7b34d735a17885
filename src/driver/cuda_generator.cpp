// Generation on a GPU: one recorded graph a token.
//
// A step reads its inputs (tokens, pos, slot, ...) from one block of device memory and writes the
// next step's to another; two graphs with the blocks in turn need no copies between steps. The graph
// ends with the copy of the tokens to the host. A step is launched before the tokens of the one
// before it are read, so that the device does not wait for the host.
#include "driver/generation_state.h"
#include "runtime/cuda_executor.h"

namespace sinter {
namespace {

class CudaGenerator final : public RecordedGenerator {
 public:
  static Result<std::unique_ptr<RecordedGenerator>> create(std::shared_ptr<const Model> model,
                                                           Started state,
                                                           std::vector<int32_t> first,
                                                           int64_t most) {
    auto generator = std::make_unique<CudaGenerator>();
    generator->model_ = std::move(model);
    generator->state_ = std::move(state);
    generator->tokens_ = std::move(first);
    generator->most_ = generator->left_ = most;
    if (most > 1) SINTER_TRY(generator->record());
    return generator;
  }

  ~CudaGenerator() override {
    if (recorded_) (void)stream().synchronize("the last step");  // of what still runs on our memory
  }

  Result<std::vector<int32_t>> next() override {
    SINTER_CHECK(left_ > 0, "more tokens than announced");
    if (--left_ == 0 && taken_ == 0 && !recorded_) return tokens_;
    SINTER_TRY(launch_until(taken_ + 1));
    if (taken_++ == 0) return tokens_;
    const size_t turn = static_cast<size_t>(taken_) % 2;  // step taken_ - 2 wrote to it
    SINTER_TRY(done_[turn].wait());
    const auto* ids = reinterpret_cast<const int32_t*>(arrived_[turn].data());
    return std::vector<int32_t>(ids, ids + tokens_.size());
  }

  Status restart() override {
    left_ = most_;
    launched_ = taken_ = 0;
    return recorded_ ? upload() : Status();
  }

  const CudaStream& stream() const override { return session().stream(); }

 private:
  const CudaSession& session() const { return static_cast<const CudaSession&>(*state_.session); }

  /// Step i (0 chooses the second token) uses graph i mod 2.
  Status launch_until(int64_t count) {
    for (; launched_ < std::min(count, most_ - 1); ++launched_) {
      const auto turn = static_cast<size_t>(launched_ % 2);
      SINTER_TRY(graphs_[turn].launch(stream()));
      SINTER_TRY(done_[turn].record(stream()));
    }
    return {};
  }

  Status record() {
    const CudaDevicePtr& device = session().model().cuda_device();
    SINTER_TRY(lay_out());
    for (size_t turn = 0; turn < 2; ++turn) {
      SINTER_LET(event, CudaEvent::create(device));
      done_[turn] = std::move(event);
      SINTER_LET(pinned, PinnedMemory::allocate(device, tokens_.size() * sizeof(int32_t)));
      arrived_[turn] = std::move(pinned);
      SINTER_LET(decode, place("decode", turn, arena_.address(), 0));
      SINTER_LET(sample, place("sample", turn, arena_.address() + sample_arena_, decode.output(0)));
      SINTER_TRY(session().prepare(decode));
      SINTER_TRY(session().prepare(sample));
      SINTER_LET(graph, CudaGraph::record(stream(), [&]() -> Status {
                   SINTER_TRY(session().enqueue(decode, stream()));
                   SINTER_TRY(session().enqueue(sample, stream()));
                   return stream().copy_to_host({arrived_[turn].data(), arrived_[turn].bytes()},
                                                address("tokens", 1 - turn));
                 }));
      graphs_[turn] = std::move(graph);
    }
    recorded_ = true;
    return {};
  }

  /// Gives every input its place: carried ones in both blocks, the others in the first.
  Status lay_out() {
    const CudaDevicePtr& device = session().model().cuda_device();
    const EntryPlan& sample = *model_->program().find_entry("sample");
    for (const auto& [name, tensor] : state_.inputs) {
      offsets_[name] = {block_bytes_, false};
      block_bytes_ += aligned_bytes(tensor.bytes.size());
    }
    for (const std::string& output : sample.output_names)
      if (const auto at = offsets_.find(carried_input(output)); at != offsets_.end()) at->second.carried = true;
    SINTER_LET(blocks, CudaMemory::allocate(device, 2 * block_bytes_, "the state of generation"));
    blocks_ = std::move(blocks);
    SINTER_TRY(upload());
    SINTER_LET(decode_bytes, session().arena_bytes("decode", state_.symbol_values));
    SINTER_LET(sample_bytes, session().arena_bytes("sample", state_.symbol_values));
    sample_arena_ = aligned_bytes(decode_bytes);
    SINTER_LET(arena, CudaMemory::allocate(device, sample_arena_ + aligned_bytes(sample_bytes),
                                           "the arena"));
    arena_ = std::move(arena);
    return {};
  }

  /// The first step's inputs, behind all steps that are under way.
  Status upload() {
    for (const auto& [name, tensor] : state_.inputs)
      SINTER_TRY(stream().copy_to_device(address(name, 0), tensor.bytes));
    return stream().synchronize("uploading the state of generation");
  }

  CudaAddress address(std::string_view name, size_t turn) const {
    const auto at = offsets_.find(name);
    SINTER_CHECK(at != offsets_.end(), "nothing gives the input %{}", name);
    return blocks_.address() + (at->second.carried ? turn * block_bytes_ : 0) + at->second.offset;
  }

  Result<CudaCall> place(std::string_view entry_name, size_t turn, CudaAddress arena, CudaAddress logits) const {
    const EntryPlan& entry = *model_->program().find_entry(entry_name);
    std::vector<CudaAddress> inputs, outputs;
    for (uint32_t id : entry.inputs) {
      const std::string& name = entry.buffers[id].value;
      inputs.push_back(name == "logits" ? logits : address(name, turn));
    }
    for (const std::string& output : entry.output_names) {
      const std::string_view name = carried_input(output);
      outputs.push_back(name.empty() ? 0 : address(name, 1 - turn));
    }
    return session().place(entry_name, state_.symbol_values, inputs, arena, outputs);
  }

  struct Place {
    size_t offset = 0;
    bool carried = false;  // from step to step
  };

  std::shared_ptr<const Model> model_;
  Started state_;
  std::vector<int32_t> tokens_;  // the first of each sequence
  int64_t most_ = 0, left_ = 0, launched_ = 0, taken_ = 0;
  bool recorded_ = false;
  std::map<std::string, Place, std::less<>> offsets_;
  size_t block_bytes_ = 0, sample_arena_ = 0;
  CudaMemory blocks_, arena_;
  PinnedMemory arrived_[2];
  CudaEvent done_[2];
  CudaGraph graphs_[2];
};

}  // namespace

Result<std::unique_ptr<RecordedGenerator>> record_generation(std::shared_ptr<const Model> model,
                                                             Started state,
                                                             std::vector<int32_t> first,
                                                             int64_t most) {
  return CudaGenerator::create(std::move(model), std::move(state), std::move(first), most);
}

}  // namespace sinter
