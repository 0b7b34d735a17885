// Calls that a host program makes: the same bits on the host and on a device, from the caller's
// memory, stream, context and allocator.
#include <doctest/doctest.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>

#include "driver/calls_case.h"
#include "runtime/random_inputs.h"
#include "support/result.h"

namespace sinter::calls_test {
namespace {

const std::map<std::string, int64_t> kRows = {{"R", kCallRows}};

LoadPlanOptions host_weights(const CallWeights& weights) {
  LoadPlanOptions options;
  options.host_weights = {{"model.table", weights.table_view()},
                          {"model.scale", weights.scale_view()}};
  options.machine_code = host_machine_code(calls_program());
  return options;
}

std::shared_ptr<Device> gpu(const GpuOptions& options = {}) {
  fake();
  return value(Device::gpu(options));
}

std::shared_ptr<const LoadedPlan> plan_on(std::shared_ptr<Device> device) {
  const CallWeights weights = CallWeights::random();
  return value(LoadedPlan::load(std::move(device), calls_program(), host_weights(weights)));
}

HostTensor empty_tensor(DType dtype, std::vector<int64_t> dims) {
  HostTensor tensor = value(make_tensor(dtype, std::move(dims)));
  std::fill(tensor.bytes.begin(), tensor.bytes.end(), std::byte{0x5A});
  return tensor;
}

/// A call with tensors of its own, all bound.
struct Called {
  Called(const std::shared_ptr<CallSession>& session, std::string_view entry,
         const std::map<std::string, HostTensor>& inputs)
      : call(value(BoundCall::create(session, entry))) {
    for (const auto& [name, tensor] : inputs) {
      given.emplace(name, CallerMemory(tensor));
      require(call->bind_input(name, given.at(name).view()));
    }
    const EntryPlan& plan = *session->plan().program().find_entry(entry);
    for (const std::string& name : plan.output_names) {
      if (taken.contains(name)) continue;
      const DType dtype = DType::f32;
      taken.emplace(name, CallerMemory(empty_tensor(dtype, value(call->output_dims(name)))));
      require(call->bind_output(name, taken.at(name).view()));
    }
  }
  std::vector<std::byte> outputs() const {
    std::vector<std::byte> all;
    for (const auto& [name, memory] : taken) {
      const HostTensor tensor = memory.read();
      all.insert(all.end(), tensor.bytes.begin(), tensor.bytes.end());
    }
    return all;
  }
  std::unique_ptr<BoundCall> call;
  std::map<std::string, CallerMemory> given, taken;
};

std::map<std::string, HostTensor> step_inputs(int64_t seed, int64_t tokens = kCallTokens) {
  const CaseInputs inputs = CaseInputs::random(seed, tokens);
  return {{"ids", inputs.ids}, {"slot", inputs.slot}, {"first", inputs.first}, {"x", inputs.x}};
}
std::map<std::string, HostTensor> wide_inputs(int64_t rows) {
  return {{"w", value(random_tensor(DType::f32, {rows, kCallWidth}, 3))}};
}

std::vector<std::byte> state_of(CallSession& session, std::string_view name) {
  HostTensor tensor = empty_tensor(DType::f32, {kCallRows, kCallWidth});
  require(session.read_state(name, view_of(tensor)));
  return tensor.bytes;
}

/// The bytes that a session's calls leave: outputs after each run, then the states.
std::vector<std::byte> left_by(const std::shared_ptr<CallSession>& session, int64_t seeds) {
  std::vector<std::byte> all;
  const auto add = [&](const std::vector<std::byte>& bytes) {
    all.insert(all.end(), bytes.begin(), bytes.end());
  };
  const auto run = [&](Called& called) {
    require(called.call->run());
    require(called.call->check());
    add(called.outputs());
  };
  Called first(session, "step", step_inputs(0));
  run(first);
  Called small(session, "wide", wide_inputs(5));
  run(small);
  for (int64_t seed = 1; seed < seeds; ++seed) {
    Called step(session, "step", step_inputs(seed, 1 + seed % 8));
    run(step);
    Called wide(session, "wide", wide_inputs(40 * seed));  // in a larger arena
    run(wide);
    run(small);  // in the arena that it was placed in
    run(first);
  }
  for (const char* name : {"keys", "values"}) add(state_of(*session, name));
  return all;
}

const std::vector<std::byte>& expected() {
  static const auto bytes =
      left_by(value(CallSession::create(plan_on(Device::cpu()), kRows, {})), 4);
  return bytes;
}

std::set<std::string> names_of(const std::vector<FakeCall>& calls) {
  std::set<std::string> names;
  for (const FakeCall& call : calls) names.insert(call.name);
  return names;
}

TEST_CASE("calls on a device leave the host's bits, in outputs of every kind and in states") {
  REQUIRE(expected().size() > 10000);
  fake();
  const size_t before = fake().handles();
  {
    const auto plan = plan_on(gpu());
    for (int round = 0; round < 2; ++round)
      CHECK(left_by(value(CallSession::create(plan, kRows, {})), 4) == expected());
  }
  CHECK(fake().handles() == before);
}

TEST_CASE("outputs are a value, an input, a weight and a state, in the caller's memory") {
  const CallWeights weights = CallWeights::random();
  for (const auto& device : {Device::cpu(), gpu()}) {
    const auto session = value(CallSession::create(plan_on(device), kRows, {}));
    Called step(session, "step", step_inputs(1));
    require(step.call->run());
    require(session->synchronize());
    CHECK(step.taken.at("x").read().bytes == step.given.at("x").read().bytes);
    CHECK(step.taken.at("table").read().bytes == weights.table.bytes);
    CHECK(step.taken.at("k").read().bytes == state_of(*session, "keys"));
    require(session->clear_states());
    const auto cleared = state_of(*session, "keys");
    CHECK(cleared != step.taken.at("k").read().bytes);
    CHECK(cleared == std::vector<std::byte>(cleared.size()));
  }
}

TEST_CASE("outputs that no step computes in their memory are copied, within the device") {
  // As it is compiled, a plan has copies of its own for such outputs.
  auto program = std::make_shared<Program>(*calls_program());
  EntryPlan& entry =
      *llvm::find_if(program->entries, [](const auto& e) { return e.name == "step"; });
  const auto add = [&](uint32_t buffer, const char* name) {
    entry.outputs.push_back(buffer);
    entry.output_names.emplace_back(name);
  };
  for (uint32_t id = 0; id < entry.buffers.size(); ++id) {
    const Buffer& buffer = entry.buffers[id];
    if (buffer.place == Buffer::Place::input && buffer.value == "x") add(id, "input");
    if (buffer.place == Buffer::Place::weight && buffer.value == "table") add(id, "weight");
  }
  add(entry.outputs[0], "again");
  const CallWeights weights = CallWeights::random();
  std::vector<std::byte> on_host;
  for (const auto& device : {Device::cpu(), gpu()}) {
    const auto plan = value(LoadedPlan::load(device, program, host_weights(weights)));
    const auto session = value(CallSession::create(plan, kRows, {}));
    Called step(session, "step", step_inputs(1));
    require(step.call->prepare());
    fake().take_copies();
    fake().take_calls();
    require(step.call->run());
    require(session->synchronize());
    CHECK(step.taken.at("input").read().bytes == step.given.at("x").read().bytes);
    CHECK(step.taken.at("weight").read().bytes == weights.table.bytes);
    CHECK(step.taken.at("again").read().bytes == step.taken.at("y").read().bytes);
    if (!device->on_gpu()) {
      on_host = step.outputs();
      continue;
    }
    CHECK(step.outputs() == on_host);
    CHECK(fake().take_copies().size() == 3);
    CHECK(names_of(fake().take_calls()) ==
          std::set<std::string>{"cuCtxGetCurrent", "cuCtxSetCurrent", "cuLaunchKernelEx",
                                "cuMemcpyDtoDAsync_v2", "cuStreamIsCapturing",
                                "cuStreamSynchronize"});
  }
}

/// The driver's functions that a prepared call uses.
const std::set<std::string> kLaunchesAlone = {"cuCtxGetCurrent", "cuCtxSetCurrent",
                                              "cuLaunchKernelEx", "cuStreamIsCapturing"};

TEST_CASE("a prepared call only launches, and its first kernel begins in order") {
  const auto session = value(CallSession::create(plan_on(gpu()), kRows, {}));
  Called step(session, "step", step_inputs(1)), wide(session, "wide", wide_inputs(64));
  require(step.call->run());
  require(wide.call->prepare());
  require(session->synchronize());
  fake().take_launches();
  fake().take_copies();
  fake().take_calls();
  require(wide.call->run());
  CHECK(names_of(fake().take_calls()) == kLaunchesAlone);
  require(step.call->run());
  CHECK(names_of(fake().take_calls()) == kLaunchesAlone);
  require(session->synchronize());
  const std::vector<FakeLaunch> launches = fake().take_launches();
  const EntryPlan& entry = *calls_program()->find_entry("wide");
  REQUIRE(launches.size() > entry.steps.size());
  CHECK_FALSE(launches[0].overlaps);
  CHECK_FALSE(launches[entry.steps.size()].overlaps);
  CHECK(llvm::any_of(launches, [](const FakeLaunch& launch) { return launch.overlaps; }));
  // Bound to the same memory again, it is still prepared.
  require(step.call->bind_input("x", step.given.at("x").view()));
  fake().take_calls();
  require(step.call->run());
  CHECK(names_of(fake().take_calls()) == kLaunchesAlone);
  require(session->synchronize());
}

/// A call's tensors in memory of their own, in the entry's order.
struct MovedCall {
  MovedCall(const EntryPlan& entry, const std::map<std::string, HostTensor>& given,
            const std::map<std::string, CallerMemory>& bound) {
    for (const uint32_t id : entry.inputs) {
      memory.emplace_back(given.at(entry.buffers[id].value));
      inputs.push_back(memory.back().view().data);
    }
    std::map<std::string, void*> addresses;  // of an output that is named twice, one
    for (const std::string& name : entry.output_names) {
      if (!addresses.contains(name)) {
        memory.emplace_back(empty_tensor(DType::f32, bound.at(name).view().dims));
        addresses[name] = memory.back().view().data;
        taken.emplace(name, memory.back());
      }
      outputs.push_back(addresses[name]);
    }
  }
  std::vector<std::byte> read() const {
    std::vector<std::byte> all;
    for (const auto& [name, memory] : taken) {
      const HostTensor tensor = memory.read();
      all.insert(all.end(), tensor.bytes.begin(), tensor.bytes.end());
    }
    return all;
  }
  std::vector<CallerMemory> memory;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  std::map<std::string, CallerMemory> taken;
};

TEST_CASE("a prepared call moves to other memory and only launches, with outputs of every kind") {
  for (const auto& device : {Device::cpu(), gpu()}) {
    CAPTURE(device->on_gpu());
    const auto session = value(CallSession::create(plan_on(device), kRows, {}));
    const EntryPlan& entry = *session->plan().program().find_entry("step");
    Called step(session, "step", step_inputs(1));
    require(step.call->run());
    require(session->synchronize());
    const std::vector<std::byte> before = step.outputs();
    for (const int64_t seed : {2, 5}) {
      const auto given = step_inputs(seed);
      const auto own = value(CallSession::create(plan_on(Device::cpu()), kRows, {}));
      require(own->clear_states());
      Called reference(own, "step", given);
      require(reference.call->run());
      require(session->clear_states());
      require(session->synchronize());
      const MovedCall moved(entry, given, step.taken);
      fake().take_calls();
      require(step.call->set_addresses(moved.inputs, moved.outputs));
      require(step.call->run());
      const auto asked = names_of(fake().take_calls());
      if (device->on_gpu()) CHECK(asked == kLaunchesAlone);
      require(step.call->check());
      require(session->synchronize());
      CHECK(moved.read() == reference.outputs());
      CHECK(step.outputs() == before);  // where it was bound before
    }
  }
}

TEST_CASE("a captured graph keeps its addresses when the call moves") {
  const auto device = gpu();
  const CudaStream stream = value(CudaStream::create(device->cuda()));
  const auto session =
      value(CallSession::create(plan_on(device), {{"R", kCallRows}}, stream.handle()));
  Called wide(session, "wide", wide_inputs(20));
  require(wide.call->prepare());
  const CudaGraph graph =
      value(CudaGraph::record(stream, [&]() -> Status { return wide.call->run(); }));
  require(graph.launch(stream));
  require(session->synchronize());
  const std::vector<std::byte> captured = wide.outputs();
  const EntryPlan& entry = *session->plan().program().find_entry("wide");
  const MovedCall moved(entry, {{"w", value(random_tensor(DType::f32, {20, kCallWidth}, 8))}},
                        wide.taken);
  require(wide.call->set_addresses(moved.inputs, moved.outputs));
  const std::vector<std::byte> untouched = moved.read();
  require(graph.launch(stream));
  require(session->synchronize());
  CHECK(wide.outputs() == captured);
  CHECK(moved.read() == untouched);
  require(wide.call->run());
  require(session->synchronize());
  CHECK(moved.read() != untouched);
  CHECK(moved.read() != captured);
}

TEST_CASE("a call is captured on the caller's stream and replayed on new inputs") {
  fake();
  const size_t before = fake().handles();
  {
    const auto device = gpu();
    const CudaStream stream = value(CudaStream::create(device->cuda()));
    const auto plan = plan_on(device);
    const auto on_host = value(CallSession::create(plan_on(Device::cpu()), kRows, {}));
    const auto session = value(CallSession::create(plan, kRows, stream.handle()));
    CHECK(session->stream() == static_cast<void*>(stream.handle()));
    Called step(session, "step", step_inputs(1)), wide(session, "wide", wide_inputs(100));
    const auto capture = [&] {
      return CudaGraph::record(stream, [&]() -> Status { return step.call->run(); });
    };
    const auto too_early = capture();
    REQUIRE_FALSE(too_early);
    CHECK(too_early.error().message() ==
          "entry step: the call is not prepared, and its stream is being captured; prepare the "
          "call before the capture");
    require(step.call->prepare());
    fake().take_launches();
    const CudaGraph graph = value(capture());
    CHECK(fake().take_launches().empty());
    require(wide.call->run());  // in a larger arena; the graph keeps its own
    for (int64_t seed : {1, 4, 2}) {
      Called reference(on_host, "step", step_inputs(seed));
      require(reference.call->run());
      for (auto& [name, memory] : step.given) {
        const HostTensor input = step_inputs(seed).at(name);
        copy_to(memory.view(), input.bytes);
      }
      require(graph.launch(stream));
      require(step.call->check());
      require(session->synchronize());
      CHECK(step.outputs() == reference.outputs());
    }
    CHECK(state_of(*session, "values") == state_of(*on_host, "values"));
  }
  CHECK(fake().handles() == before);
}

TEST_CASE("sessions on threads and streams of their own leave the same bits at the same time") {
  REQUIRE(!expected().empty());
  const auto plan = plan_on(gpu());
  const CudaStream stream = value(CudaStream::create(plan->device().cuda()));
  const size_t before = fake().handles();
  std::vector<std::vector<std::byte>> left(4);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < left.size(); ++i)
    threads.emplace_back([&, i] {
      auto session = CallSession::create(
          plan, kRows, i == 0 ? std::optional<void*>(stream.handle()) : std::nullopt);
      if (session) left[i] = left_by(*session, 4);
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& bytes : left) CHECK(bytes == expected());
  CHECK(fake().handles() == before);
}

TEST_CASE("the default stream is a stream like others, but for captures") {
  const auto session = value(CallSession::create(plan_on(gpu()), kRows, nullptr));
  CHECK(session->stream() == nullptr);
  CHECK(left_by(session, 4) == expected());
}

/// Memory of the fake driver through an allocator of the test's.
struct Allocator {
  void* allocate(size_t bytes, void* stream) {
    const std::lock_guard lock(mutex);
    ++calls;
    streams.insert(stream);
    if (calls == fails_at) return nullptr;
    void* const memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
    live[memory] = {bytes, stream};
    return memory;
  }
  void release(void* memory, size_t bytes, void* stream) {
    const std::lock_guard lock(mutex);
    CHECK(live.contains(memory));
    CHECK(live[memory] == std::pair(bytes, stream));
    live.erase(memory);
    released.push_back(memory);
  }
  // Where the wait for a session's work has failed, the fake driver may still do that work.
  ~Allocator() {
    for (void* memory : released) std::free(memory);
  }
  GpuOptions options(void* context = nullptr) {
    GpuOptions options;
    options.context = context;
    options.allocate = [this](size_t bytes, void* stream) { return allocate(bytes, stream); };
    options.release = [this](void* memory, size_t bytes, void* stream) {
      release(memory, bytes, stream);
    };
    return options;
  }
  std::mutex mutex;
  std::map<void*, std::pair<size_t, void*>> live;
  std::set<void*> streams;
  std::vector<void*> released;
  size_t calls = 0, fails_at = 0;
};

void set_context(void* context) {
  value(load_cuda())->context_set(static_cast<CudaApi::Context>(context));
}
void* current_context() {
  CudaApi::Context context = nullptr;
  value(load_cuda())->context_get(&context);
  return context;
}

TEST_CASE("the caller's context is used, and the thread's current one stays what it was") {
  fake();
  void* const own = fake().make_context(0);
  for (void* const current : {static_cast<void*>(nullptr), fake().make_context(0), own}) {
    set_context(current);
    const auto same = [&] { CHECK(current_context() == current); };
    const CallWeights weights = CallWeights::random();
    fake().take_calls();
    GpuOptions options;
    options.context = own;
    auto device = value(Device::gpu(options));
    same();
    auto plan = value(LoadedPlan::load(device, calls_program(), host_weights(weights)));
    same();
    auto session = value(CallSession::create(plan, kRows, {}));
    same();
    {
      Called step(session, "step", step_inputs(1));
      same();
      require(step.call->prepare());
      same();
      require(step.call->run());
      same();
      require(step.call->check());
      same();
    }
    state_of(*session, "keys");
    same();
    require(session->clear_states());
    same();
    require(session->synchronize());
    same();
    session.reset();
    same();
    plan.reset();
    same();
    device.reset();
    same();
    bool uses_own = false;
    for (const FakeCall& call : fake().take_calls()) {
      const std::string name = call.name;
      CAPTURE(name);
      CHECK(name.find("PrimaryCtx") == std::string::npos);
      for (const char* begin : {"cuMem", "cuStream", "cuLaunch", "cuLibrary", "cuEvent"})
        if (name.starts_with(begin)) CHECK(call.context == own);
      uses_own |= call.context == own;
    }
    CHECK(uses_own);
  }
  set_context(nullptr);
  const CudaStream foreign = value(CudaStream::create(gpu()->cuda()));
  set_context(nullptr);
  GpuOptions options;
  options.context = own;
  const auto session = CallSession::create(plan_on(gpu(options)), kRows, foreign.handle());
  REQUIRE_FALSE(session);
  CHECK(session.error().what.starts_with("the stream is of context "));
}

/// A call in one session, then a larger one in a session beside it. `captured`: the first runs in
/// a graph.
void check_shared_memory(bool captured) {
  Allocator allocator;
  const auto device = value(Device::gpu(allocator.options()));
  const CallWeights weights = CallWeights::random();
  const auto plan = value(LoadedPlan::load(device, calls_program(), host_weights(weights)));
  const CudaStream stream = value(CudaStream::create(device->cuda()));
  const auto first = value(CallSession::create(plan, kRows, stream.handle()));
  const auto second = value(CallSession::create_beside(*first, plan, kRows));
  CHECK(second->stream() == first->stream());
  Called step(first, "step", step_inputs(1)), wide(second, "wide", wide_inputs(100));
  const auto others = allocator.live;
  require(step.call->prepare());
  std::vector<void*> own;
  for (const auto& [memory, size] : allocator.live)
    if (!others.contains(memory)) own.push_back(memory);
  std::optional<CudaGraph> graph;
  if (captured) {
    graph = value(CudaGraph::record(stream, [&]() -> Status { return step.call->run(); }));
    require(graph->launch(stream));
  } else {
    require(step.call->run());
  }
  require(wide.call->run());
  const auto gone = llvm::count_if(own, [&](void* m) { return !allocator.live.contains(m); });
  CHECK(gone == (captured ? 0 : 1));
  require(step.call->run());  // in the memory of the larger call
  require(first->synchronize());

  const auto host = value(LoadedPlan::load(Device::cpu(), calls_program(), host_weights(weights)));
  const auto reference = value(CallSession::create(host, kRows, {}));
  Called again(reference, "step", step_inputs(1));
  for (int run = 0; run < 2; ++run) require(again.call->run());
  CHECK(step.outputs() == again.outputs());
  CHECK(state_of(*first, "values") == state_of(*reference, "values"));
}

TEST_CASE("sessions in one stream share their memory, and graphs keep what they recorded") {
  fake();
  const size_t before = fake().handles();
  for (const bool captured : {false, true}) check_shared_memory(captured);
  CHECK(fake().handles() == before);
  const auto on_host = value(CallSession::create(plan_on(Device::cpu()), kRows, {}));
  const auto apart = CallSession::create_beside(*on_host, plan_on(gpu()), kRows);
  REQUIRE_FALSE(apart);
  CHECK(apart.error().what == "the other session's plan is on another device");
}

/// All that a host program does once; `made`: the allocator's memory alone is used.
Status call_once(const GpuOptions& options, const CallWeights& weights) {
  SINTER_LET(device, Device::gpu(options));
  LoadPlanOptions load = host_weights(weights);
  const CallerMemory table(weights.table);
  load.host_weights.erase("model.table");
  TensorView odd = table.view();
  load.device_weights["model.table"] = odd;
  SINTER_LET(plan, LoadedPlan::load(device, calls_program(), load));
  std::vector<CallerMemory> kept;  // until the session has waited for its work
  SINTER_LET(session, CallSession::create(plan, {{"R", kCallRows}}, {}));
  for (const char* entry : {"step", "wide"}) {
    SINTER_LET(call, BoundCall::create(session, entry));
    for (const auto& [name, tensor] :
         entry == std::string("step") ? step_inputs(1) : wide_inputs(90)) {
      kept.emplace_back(tensor);
      SINTER_TRY(call->bind_input(name, kept.back().view()));
    }
    std::set<std::string> names;
    for (const std::string& name : calls_program()->find_entry(entry)->output_names) {
      if (!names.insert(name).second) continue;
      SINTER_LET(dims, call->output_dims(name));
      kept.emplace_back(empty_tensor(DType::f32, dims));
      SINTER_TRY(call->bind_output(name, kept.back().view()));
    }
    SINTER_TRY(call->run());
    SINTER_TRY(call->check());
  }
  HostTensor keys = empty_tensor(DType::f32, {kCallRows, kCallWidth});
  SINTER_TRY(session->read_state("keys", view_of(keys)));
  return session->synchronize();
}

TEST_CASE("all device memory comes from the caller's allocator and goes back to it") {
  fake();
  const CallWeights weights = CallWeights::random();
  const size_t before = fake().handles();
  Allocator allocator;
  fake().take_calls();
  require(call_once(allocator.options(), weights));
  const std::set<std::string> names = names_of(fake().take_calls());
  CHECK_FALSE(names.contains("cuMemAlloc_v2"));
  CHECK_FALSE(names.contains("cuMemFree_v2"));
  CHECK(allocator.live.empty());
  CHECK(allocator.streams.size() == 2);  // null for the weights, and the session's
  CHECK(allocator.streams.contains(nullptr));
  CHECK(fake().handles() == before);
  const size_t calls = allocator.calls;
  CHECK(calls >= 5);  // weights, two states, two arenas
  for (size_t k = 1; k <= calls; ++k) {
    Allocator failing;
    failing.fails_at = k;
    const Status status = call_once(failing.options(), weights);
    REQUIRE_FALSE(status);
    CHECK(status.error().message().find("no device memory for ") != std::string::npos);
    CHECK(status.error().code == ExitCode::device);
    CHECK(failing.live.empty());
    CHECK(fake().handles() == before);
  }
}

/// A call in groups of steps, with memory for each tensor from the group that needs it first to the
/// one that needs it last. Memory that a tensor leaves is overwritten. Returns the outputs by name.
std::map<std::string, std::vector<std::byte>> left_by_groups(
    CallSession& session, BoundCall& call, const std::map<std::string, HostTensor>& inputs,
    const EntryPlan& entry, size_t steps_at_once) {
  call.allow_groups();
  for (const auto& [name, tensor] : inputs)
    require(call.bind_input(name, {nullptr, tensor.dtype, tensor.dims, {}}));
  const auto type_of = [&](const std::string& name) {
    return TensorView{nullptr, DType::f32, value(call.output_dims(name)), {}};
  };
  for (const std::string& name : entry.output_names) require(call.bind_output(name, type_of(name)));
  const size_t steps = value(call.step_count());
  const Lifetimes used = *value(call.lifetimes());
  std::map<std::string, CallerMemory> given, taken;
  for (const auto& [name, tensor] : inputs) given.emplace(name, CallerMemory(tensor));
  for (size_t first = 0; first < steps; first += steps_at_once) {
    const size_t last = std::min(first + steps_at_once, steps);
    std::vector<const void*> from;
    for (size_t i = 0; i < entry.inputs.size(); ++i) {
      const TensorView view = given.at(entry.buffers[entry.inputs[i]].value).view();
      const bool is_over = used.input_ends[i] <= first;
      if (is_over) std::memset(view.data, 0x5A, bytes_of(view));
      from.push_back(is_over ? nullptr : view.data);
    }
    std::vector<void*> to;
    for (size_t i = 0; i < entry.outputs.size(); ++i) {
      const std::string& name = entry.output_names[i];
      const bool is_early = used.output_begins[i] >= last && last < steps;
      if (!is_early) taken.try_emplace(name, empty_tensor(DType::f32, type_of(name).dims));
      to.push_back(is_early ? nullptr : taken.at(name).view().data);
    }
    require(call.set_addresses(from, to));
    require(call.run_steps(first, last));
    require(session.synchronize());
  }
  std::map<std::string, std::vector<std::byte>> left;
  for (const auto& [name, memory] : taken) left[name] = memory.read().bytes;
  return left;
}

TEST_CASE("steps in groups leave the bits of a run, while memory comes and goes between them") {
  const auto session_on = [](const std::shared_ptr<Device>& device) {
    return value(CallSession::create(plan_on(device), kRows, {}));
  };
  for (const auto& [entry, inputs] : {std::pair(std::string("step"), step_inputs(3)),
                                      std::pair(std::string("wide"), wide_inputs(50))}) {
    CAPTURE(entry);
    const EntryPlan& plan = *calls_program()->find_entry(entry);
    REQUIRE(plan.steps.size() > 1);
    std::map<std::string, std::vector<std::byte>> expected;
    Called whole(session_on(gpu()), entry, inputs);
    require(whole.call->run());
    require(whole.call->check());
    for (const auto& [name, memory] : whole.taken) expected[name] = memory.read().bytes;
    for (const auto& device : {Device::cpu(), gpu()})
      for (const size_t at_once : {1, 2, 100}) {
        CAPTURE(at_once);
        const auto session = session_on(device);
        const auto call = value(BoundCall::create(session, entry));
        const auto left = left_by_groups(*session, *call, inputs, plan, at_once);
        for (const auto& [name, bytes] : expected) {
          CAPTURE(name);
          CHECK(left.at(name) == bytes);
        }
      }
  }
}

TEST_CASE("states in the caller's memory are written in place, and the session's are left alone") {
  const HostTensor zeros = value(make_tensor(DType::f32, {kCallRows, kCallWidth}));
  Allocator allocator;
  for (const auto& device : {Device::cpu(), gpu(allocator.options())}) {
    const auto session = value(CallSession::create(plan_on(device), kRows, {}));
    const size_t before = allocator.calls;
    CallerMemory keys(zeros), values(zeros), other_keys(zeros);
    Called step(session, "step", step_inputs(1)), own(session, "step", step_inputs(1));
    require(step.call->bind_state("keys", keys.view()));
    require(step.call->bind_state("values", values.view()));
    require(step.call->run());
    require(step.call->check());
    if (device->on_gpu()) CHECK(allocator.calls == before + 1);  // the arena
    CHECK(state_of(*session, "keys") == zeros.bytes);
    require(own.call->run());
    require(own.call->check());
    CHECK(own.outputs() == step.outputs());
    CHECK(state_of(*session, "keys") == keys.read().bytes);
    CHECK(state_of(*session, "values") == values.read().bytes);
    CHECK(keys.read().bytes != zeros.bytes);
    // The next call sees what this one left, elsewhere or here.
    require(step.call->bind_state("keys", other_keys.view()));
    require(step.call->run());
    require(step.call->check());
    CHECK(other_keys.read().bytes == keys.read().bytes);
    CHECK(step.outputs() == own.outputs());
  }
}

TEST_CASE("whichever call of the driver fails, everything is given back") {
  fake();
  const CallWeights weights = CallWeights::random();
  void* const own = fake().make_context(0);
  set_context(own);
  const size_t before = fake().handles();
  for (const bool own_memory : {false, true}) {
    Allocator counted;
    const GpuOptions usual;
    fake().fail("any", SIZE_MAX, 1);
    require(call_once(own_memory ? counted.options(own) : usual, weights));
    const size_t count = fake().calls();
    fake().fail("", 0, 0);
    REQUIRE(count > 50);
    size_t failed = 0;
    for (size_t k = 0; k < count; ++k) {
      CAPTURE(k);
      Allocator allocator;
      fake().fail("any", k, 1);
      const Status status = call_once(own_memory ? allocator.options(own) : usual, weights);
      fake().fail("", 0, 0);
      failed += !status;
      if (!status) CHECK(status.error().message().find("FAKE_ERROR (1)") != std::string::npos);
      CHECK(allocator.live.empty());
      CHECK(fake().handles() == before);
      CHECK(current_context() == own);
    }
    CHECK(failed + 4 >= count);  // an end's wait has nobody to tell
  }
  set_context(nullptr);
  require(call_once({}, weights));
}

}  // namespace
}  // namespace sinter::calls_test
