#include "driver/generate/decode_steps.h"

#include "runtime/cuda/executable.h"

namespace sinter {
namespace {

std::vector<int64_t> step_values(const Program& program, int64_t rows, size_t sequences) {
  std::vector<int64_t> values = min_symbol_values(program.symbols);
  values[static_cast<size_t>(find_symbol(program.symbols, "R"))] = rows;
  values[static_cast<size_t>(find_symbol(program.symbols, "B"))] = static_cast<int64_t>(sequences);
  return values;
}

/// The variant of an entry for these values.
const EntryPlan& entry_for(const Program& program, std::string_view name,
                           llvm::ArrayRef<int64_t> values) {
  return **find_call(program, name, values, values);
}

std::vector<int32_t> ids_of(const HostTensor& tensor) {
  const auto* ids = tensor.data<int32_t>();
  return {ids, ids + tensor.volume()};
}

class SessionSteps final : public DecodeSteps {
 public:
  SessionSteps(std::shared_ptr<const Executable> executable, Session& session, int64_t rows)
      : executable_(std::move(executable)), session_(session), rows_(rows) {}

  Result<std::vector<int32_t>> run(llvm::ArrayRef<StepRow> rows) override {
    const Program& program = executable_->program();
    const std::vector<int64_t> values = step_values(program, rows_, rows.size());
    const StepInputs inputs = step_inputs(rows);
    SINTER_LET(tensors, in_order(entry_for(program, "decode", values), inputs, nullptr));
    SINTER_LET(decoded, session_.run("decode", values, tensors));
    return sample_tokens(program, session_, values, decoded.outputs[0], rows);
  }

 private:
  std::shared_ptr<const Executable> executable_;
  Session& session_;
  int64_t rows_;
};

/// Both entries are enqueued one after the other; a step waits for its tokens alone.
class CudaSteps final : public DecodeSteps {
 public:
  CudaSteps(std::shared_ptr<const Executable> executable, CudaSession& session, int64_t rows)
      : executable_(std::move(executable)), session_(session), rows_(rows) {}

  ~CudaSteps() override { (void)session_.stream().synchronize("the last step"); }

  /// Memory for the inputs and the tokens of `most` sequences.
  Status lay_out(int64_t most) {
    const StepInputs inputs = step_inputs(std::vector<StepRow>(static_cast<size_t>(most)));
    size_t bytes = 0;
    for (const auto& [name, tensor] : inputs) {
      offsets_[name] = bytes;
      bytes += aligned_bytes(tensor.bytes.size());
    }
    tokens_at_ = bytes;
    bytes += aligned_bytes(static_cast<size_t>(most) * sizeof(int32_t));
    const CudaDevicePtr& device = session_.executable().cuda_device();
    SINTER_LET(block, CudaMemory::allocate(device, bytes, "the inputs of steps"));
    block_ = std::move(block);
    SINTER_LET(staged, PinnedMemory::allocate(device, bytes));
    staged_ = std::move(staged);
    return {};
  }

  Result<std::vector<int32_t>> run(llvm::ArrayRef<StepRow> rows) override {
    const std::vector<int64_t> values = step_values(executable_->program(), rows_, rows.size());
    SINTER_TRY(stage(rows));
    SINTER_TRY(make_room(values));
    SINTER_LET(decode, place("decode", values, arena_.address(), 0));
    SINTER_LET(sample, place("sample", values, arena_.address() + sample_arena_, decode.output(0)));
    SINTER_TRY(session_.prepare(decode));
    SINTER_TRY(session_.prepare(sample));
    SINTER_TRY(session_.enqueue(decode, session_.stream(), CallBegin::in_order));
    SINTER_TRY(session_.enqueue(sample, session_.stream()));
    std::vector<int32_t> tokens(rows.size());
    std::byte* arrived = staged_.data() + tokens_at_;
    const size_t bytes = rows.size() * sizeof(int32_t);
    SINTER_TRY(session_.stream().copy_to_host({arrived, bytes}, block_.address() + tokens_at_));
    SINTER_TRY(session_.stream().synchronize("a step of generation"));
    std::copy_n(arrived, bytes, reinterpret_cast<std::byte*>(tokens.data()));
    return tokens;
  }

 private:
  /// The inputs on the device.
  Status stage(llvm::ArrayRef<StepRow> rows) {
    for (const auto& [name, tensor] : step_inputs(rows))
      std::copy(tensor.bytes.begin(), tensor.bytes.end(), staged_.data() + offsets_.at(name));
    return session_.stream().copy_to_device(block_.address(), {staged_.data(), tokens_at_});
  }

  /// An arena that is large enough for both entries, one behind the other.
  Status make_room(llvm::ArrayRef<int64_t> values) {
    SINTER_LET(decode_bytes, session_.arena_bytes("decode", values));
    SINTER_LET(sample_bytes, session_.arena_bytes("sample", values));
    sample_arena_ = aligned_bytes(decode_bytes);
    const size_t bytes = sample_arena_ + aligned_bytes(sample_bytes);
    if (bytes <= arena_.bytes()) return {};
    SINTER_TRY(session_.stream().synchronize("the steps before"));
    arena_ = CudaMemory();
    SINTER_LET(arena,
               CudaMemory::allocate(session_.executable().cuda_device(), bytes, "the arena"));
    arena_ = std::move(arena);
    return {};
  }

  Result<CudaCall> place(std::string_view name, llvm::ArrayRef<int64_t> values, CudaAddress arena,
                         CudaAddress logits) const {
    const EntryPlan& entry = entry_for(executable_->program(), name, values);
    std::vector<CudaAddress> inputs, outputs(entry.outputs.size(), 0);
    for (uint32_t id : entry.inputs) {
      const std::string& input = entry.buffers[id].value;
      inputs.push_back(input == "logits" ? logits : block_.address() + offsets_.at(input));
    }
    for (size_t i = 0; i < outputs.size(); ++i)
      if (entry.output_names[i] == "next.tokens") outputs[i] = block_.address() + tokens_at_;
    return session_.place(name, values, inputs, arena, outputs);
  }

  std::shared_ptr<const Executable> executable_;
  CudaSession& session_;
  int64_t rows_;
  std::map<std::string, size_t, std::less<>> offsets_;  // of the inputs in the block
  size_t tokens_at_ = 0, sample_arena_ = 0;
  CudaMemory block_, arena_;
  PinnedMemory staged_;
};

/// Row numbers that an entry computes are checked by Session::run alone.
bool computes_rows(const Program& program) {
  return llvm::any_of(program.entries, [](const EntryPlan& entry) {
    return (entry.name == "decode" || entry.name == "sample") && !entry.row_checks.empty();
  });
}

}  // namespace

Result<std::vector<const HostTensor*>> in_order(const EntryPlan& entry, const StepInputs& inputs,
                                                const HostTensor* logits) {
  std::vector<const HostTensor*> tensors;
  for (uint32_t id : entry.inputs) {
    const std::string& name = entry.buffers[id].value;
    if (logits && name == "logits") {
      tensors.push_back(logits);
      continue;
    }
    const auto at = inputs.find(name);
    if (at == inputs.end())
      return fail(fmt::format("nothing gives the input %{}", printable(name)),
                  "entry " + printable(entry.name));
    tensors.push_back(&at->second);
  }
  return tensors;
}

StepInputs step_inputs(llvm::ArrayRef<StepRow> rows) {
  StepInputs inputs;
  const auto integers = [&](const char* name, auto value) {
    std::vector<int32_t> values;
    for (const StepRow& row : rows) values.push_back(value(row));
    inputs[name] = i32_tensor(values);
  };
  const auto reals = [&](const char* name, auto value) {
    std::vector<float> values;
    for (const StepRow& row : rows) values.push_back(value(row));
    inputs[name] = vector_tensor<float>(DType::f32, values);
  };
  integers("tokens", [](const StepRow& row) { return row.token; });
  integers("pos", [](const StepRow& row) { return row.pos; });
  integers("slot", [](const StepRow& row) { return row.slot; });
  integers("first", [](const StepRow& row) { return row.first; });
  integers("step", [](const StepRow& row) { return row.step; });
  integers("seed", [](const StepRow& row) { return row.sampling.seed; });
  integers("top_k", [](const StepRow& row) { return row.sampling.top_k; });
  reals("temperature", [](const StepRow& row) { return row.sampling.temperature; });
  reals("top_p", [](const StepRow& row) { return row.sampling.top_p; });
  return inputs;
}

Result<std::vector<int32_t>> sample_tokens(const Program& program, Session& session,
                                           llvm::ArrayRef<int64_t> symbol_values,
                                           const HostTensor& logits, llvm::ArrayRef<StepRow> rows) {
  const EntryPlan& entry = entry_for(program, "sample", symbol_values);
  const StepInputs inputs = step_inputs(rows);
  SINTER_LET(tensors, in_order(entry, inputs, &logits));
  SINTER_LET(result, session.run("sample", symbol_values, tensors));
  for (size_t i = 0; i < entry.output_names.size(); ++i)
    if (entry.output_names[i] == "next.tokens") return ids_of(result.outputs[i]);
  return fail("entry sample has no output next.tokens", program.name);
}

Result<std::unique_ptr<DecodeSteps>> DecodeSteps::create(
    std::shared_ptr<const Executable> executable, Session& session, int64_t rows, int64_t most) {
  CudaSession* cuda = session.on_cuda();
  if (cuda == nullptr || computes_rows(executable->program()))
    return std::make_unique<SessionSteps>(std::move(executable), session, rows);
  auto steps = std::make_unique<CudaSteps>(std::move(executable), *cuda, rows);
  SINTER_TRY(steps->lay_out(most));
  return steps;
}

}  // namespace sinter
