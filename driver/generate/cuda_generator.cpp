// Generation on a GPU: recorded graphs of kGraphSteps steps each.
//
// A step reads its inputs (tokens, pos, slot, ...) from one block of device memory and writes the
// next step's to another, so that no step waits for a copy; the copies of the tokens to the host
// run beside the steps that follow, and the host waits for one step's copies only. With the tokens
// come row numbers that a step has computed and that are to be checked. Two graphs take turns, with
// blocks of their own: the host records the second, and reads the tokens of the one, while the
// other runs. The steps that remain at the end have a graph of their own.
#include "driver/generate/cuda_generator.h"

#include "driver/generate/finite_logits.h"
#include "runtime/cuda/executable.h"
#include "runtime/input_ranges.h"

namespace sinter {
namespace {

class CudaGenerator final : public RecordedGenerator {
 public:
  static Result<std::unique_ptr<RecordedGenerator>> create(
      std::shared_ptr<const Executable> executable, Started state, int64_t most) {
    SINTER_LET(first, choose_tokens(*executable, state));
    auto generator = std::make_unique<CudaGenerator>();
    generator->executable_ = std::move(executable);
    generator->state_ = std::move(state);
    generator->tokens_ = std::move(first);
    generator->most_ = most;
    if (most > 1) SINTER_TRY(generator->lay_out());
    return generator;
  }

  ~CudaGenerator() override {
    if (launched_ > 0) (void)stream().synchronize("the last step");  // of what runs on our memory
  }

  Result<std::vector<int32_t>> next() override {
    SINTER_CHECK(taken_ < most_, "more tokens than announced");
    // A step is launched before the tokens of the one before it are waited for.
    SINTER_TRY(launch_until(taken_ + 1));
    if (taken_++ == 0) return tokens_;
    SINTER_TRY(record_next());
    const Arrival& arrival = arrivals_[block_of(taken_ - 2)];
    SINTER_TRY(arrival.done.wait());
    SINTER_TRY(check_rows(arrival));
    const auto* ids = reinterpret_cast<const int32_t*>(arrival.tokens.data());
    const llvm::ArrayRef tokens(ids, tokens_.size());
    const HostTensor& pos = state_.inputs.find("pos")->second;  // of the first tokens
    SINTER_TRY(check_chosen(tokens, pos.elements<int32_t>(), taken_ - 1));
    return tokens.vec();
  }

  Status restart() override {
    if (launched_ > 0) SINTER_TRY(upload());
    launched_ = taken_ = 0;
    return {};
  }

  const CudaStream& stream() const override { return session().stream(); }

 private:
  static constexpr int64_t kBlocks = 2 * kGraphSteps;
  static constexpr const char* kStepEntries[] = {"decode", "sample"};
  struct Arrival {  // of a step's tokens and row numbers, by its block
    PinnedMemory tokens, rows;
    CudaEvent done;
  };

  CudaSession& session() const { return *state_.session->on_cuda(); }
  int64_t steps() const { return most_ - 1; }
  /// From which step `step` (0 chooses the second token) reads.
  static size_t block_of(int64_t step) { return static_cast<size_t>(step % kBlocks); }

  Status launch_until(int64_t count) {
    while (launched_ < std::min(count, steps())) {
      SINTER_TRY(record_next());
      SINTER_TRY(graph_of(launched_).graph.launch(stream()));
      launched_ += graph_of(launched_).steps;
    }
    return {};
  }

  /// The graph that is launched next, if there is one and it is not recorded yet.
  Status record_next() {
    if (launched_ == steps() || graph_of(launched_).steps > 0) return {};
    const int64_t count = std::min(kGraphSteps, steps() - launched_);
    std::vector<std::pair<CudaCall, CudaCall>> calls;
    for (int64_t step = launched_; step < launched_ + count; ++step) {
      SINTER_LET(decode, place("decode", step, arena_.address(), 0));
      SINTER_LET(sample, place("sample", step, arena_.address() + sample_arena_, decode.output(0)));
      SINTER_TRY(session().prepare(decode));
      SINTER_TRY(session().prepare(sample));
      calls.emplace_back(std::move(decode), std::move(sample));
    }
    SINTER_LET(graph, CudaGraph::record(stream(), [&]() -> Status {
                 int64_t step = launched_;
                 for (const auto& [decode, sample] : calls) {
                   SINTER_TRY(session().enqueue(decode, stream()));
                   SINTER_TRY(session().enqueue(sample, stream()));
                   SINTER_TRY(enqueue_rows(step, {&decode, &sample}));
                   SINTER_TRY(enqueue_copy(step++));
                 }
                 SINTER_TRY(copied_.record(copies_));
                 return copied_.hold(stream());
               }));
    graph_of(launched_) = {std::move(graph), count};
    return {};
  }

  /// The tokens that a step has chosen.
  Status enqueue_copy(int64_t step) const {
    const Arrival& arrival = arrivals_[block_of(step)];
    SINTER_TRY(chosen_.record(stream()));
    SINTER_TRY(chosen_.hold(copies_));
    SINTER_TRY(copies_.copy_to_host({arrival.tokens.data(), arrival.tokens.bytes()},
                                    address("tokens", step + 1)));
    return arrival.done.record_at_launch(copies_);
  }

  /// The row numbers of a step that are to be checked. The next step overwrites them, so that it
  /// waits for these copies.
  Status enqueue_rows(int64_t step, llvm::ArrayRef<const CudaCall*> calls) const {
    const PinnedMemory& rows = arrivals_[block_of(step)].rows;
    size_t at = 0;
    for (const CudaCall* call : calls)
      for (const RowCheck& check : call->entry->row_checks) {
        const size_t bytes = row_check_bytes(*call->entry, check);
        SINTER_TRY(stream().copy_to_host({rows.data() + at, bytes}, call->addresses[check.buffer]));
        at += bytes;
      }
    return {};
  }

  Status check_rows(const Arrival& arrival) const {
    const auto* values = reinterpret_cast<const int32_t*>(arrival.rows.data());
    for (const char* name : kStepEntries) {
      const EntryPlan& entry = *executable_->program().find_entry(name);
      for (size_t i = 0; i < entry.row_checks.size(); ++i) {
        const size_t count = row_check_bytes(entry, entry.row_checks[i]) / sizeof(int32_t);
        SINTER_TRY(check_computed_rows(entry, i, state_.symbol_values, {values, count}));
        values += count;
      }
    }
    return {};
  }

  size_t row_check_bytes(const EntryPlan& entry, const RowCheck& check) const {
    size_t bytes = sizeof(int32_t);
    for (int64_t extent : concrete_dims(entry.buffers[check.buffer].type, state_.symbol_values))
      bytes *= static_cast<size_t>(extent);
    return bytes;
  }

  struct Recorded {
    CudaGraph graph;
    int64_t steps = 0;
  };
  /// The recorded graph that begins at step `step`.
  Recorded& graph_of(int64_t step) {
    if (steps() - step < kGraphSteps) return rest_;
    return graphs_[step / kGraphSteps % 2];
  }

  /// Gives every input its place: carried ones in all blocks, the others in the first.
  Status lay_out() {
    const CudaDevicePtr& device = session().executable().cuda_device();
    const EntryPlan& sample = *executable_->program().find_entry("sample");
    for (const auto& [name, tensor] : state_.inputs) {
      offsets_[name] = {block_bytes_, false};
      block_bytes_ += aligned_bytes(tensor.bytes.size());
    }
    for (const std::string& output : sample.output_names)
      if (const auto at = offsets_.find(carried_input(output)); at != offsets_.end())
        at->second.carried = true;
    SINTER_LET(blocks,
               CudaMemory::allocate(device, kBlocks * block_bytes_, "the state of generation"));
    blocks_ = std::move(blocks);
    SINTER_LET(copies, CudaStream::create(device));
    copies_ = std::move(copies);
    for (CudaEvent* event : {&chosen_, &copied_}) {
      SINTER_LET(made, CudaEvent::create(device));
      *event = std::move(made);
    }
    size_t row_bytes = 0;
    for (const char* name : kStepEntries) {
      const EntryPlan& entry = *executable_->program().find_entry(name);
      for (const RowCheck& check : entry.row_checks) row_bytes += row_check_bytes(entry, check);
    }
    for (Arrival& arrival : arrivals_) {
      SINTER_LET(done, CudaEvent::create(device));
      arrival.done = std::move(done);
      SINTER_LET(pinned, PinnedMemory::allocate(device, tokens_.size() * sizeof(int32_t)));
      arrival.tokens = std::move(pinned);
      if (row_bytes == 0) continue;
      SINTER_LET(rows, PinnedMemory::allocate(device, row_bytes));
      arrival.rows = std::move(rows);
    }
    SINTER_TRY(upload());
    session().free_arena();  // the prompts' may be large
    SINTER_LET(decode_bytes, session().arena_bytes("decode", state_.symbol_values));
    SINTER_LET(sample_bytes, session().arena_bytes("sample", state_.symbol_values));
    sample_arena_ = aligned_bytes(decode_bytes);
    SINTER_LET(arena, CudaMemory::allocate(device, sample_arena_ + aligned_bytes(sample_bytes),
                                           "the arena"));
    arena_ = std::move(arena);
    return {};
  }

  /// The first step's inputs, after all steps that are under way.
  Status upload() {
    for (const auto& [name, tensor] : state_.inputs)
      SINTER_TRY(stream().copy_to_device(address(name, 0), tensor.bytes));
    return stream().synchronize("uploading the state of generation");
  }

  /// The address at which step `step` reads the input `name`.
  CudaAddress address(std::string_view name, int64_t step) const {
    const auto at = offsets_.find(name);
    SINTER_CHECK(at != offsets_.end(), "nothing gives the input %{}", name);
    return blocks_.address() + (at->second.carried ? block_of(step) * block_bytes_ : 0) +
           at->second.offset;
  }

  Result<CudaCall> place(std::string_view entry_name, int64_t step, CudaAddress arena,
                         CudaAddress logits) const {
    const EntryPlan& entry = *executable_->program().find_entry(entry_name);
    std::vector<CudaAddress> inputs, outputs;
    for (uint32_t id : entry.inputs) {
      const std::string& name = entry.buffers[id].value;
      inputs.push_back(name == "logits" ? logits : address(name, step));
    }
    for (const std::string& output : entry.output_names) {
      const std::string_view name = carried_input(output);
      outputs.push_back(name.empty() ? 0 : address(name, step + 1));
    }
    return session().place(entry_name, state_.symbol_values, inputs, arena, outputs);
  }

  struct Place {
    size_t offset = 0;
    bool carried = false;  // from step to step
  };

  std::shared_ptr<const Executable> executable_;
  Started state_;
  std::vector<int32_t> tokens_;  // the first of each sequence
  int64_t most_ = 0, launched_ = 0, taken_ = 0;
  std::map<std::string, Place, std::less<>> offsets_;
  size_t block_bytes_ = 0, sample_arena_ = 0;
  CudaMemory blocks_, arena_;
  CudaStream copies_;
  CudaEvent chosen_, copied_;
  Arrival arrivals_[kBlocks];
  Recorded graphs_[2], rest_;
};

}  // namespace

Result<std::unique_ptr<RecordedGenerator>> record_generation(
    std::shared_ptr<const Executable> executable, Started state, int64_t most) {
  return CudaGenerator::create(std::move(executable), std::move(state), most);
}

}  // namespace sinter
