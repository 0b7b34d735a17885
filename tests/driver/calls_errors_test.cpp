// Weights in memory of every kind, row numbers in device memory, and what calls refuse.
#include <doctest/doctest.h>

#include "driver/calls/given_rows.h"
#include "driver/calls_case.h"
#include "runtime/random_inputs.h"
#include "support/result.h"

namespace sinter::calls_errors_test {
namespace {

const std::map<std::string, int64_t> kSymbols = {{"R", kCallRows}};

std::shared_ptr<Device> device_of(bool on_gpu) {
  fake();
  return on_gpu ? value(Device::gpu({})) : Device::cpu();
}

struct Weighted {
  CallWeights weights = CallWeights::random();
  LoadPlanOptions options;
  Weighted() {
    options.host_weights = {{"model.table", weights.table_view()},
                            {"model.scale", weights.scale_view()}};
    options.machine_code = host_machine_code(calls_program());
  }
  auto load(bool on_gpu) { return LoadedPlan::load(device_of(on_gpu), calls_program(), options); }
};

std::string said(const Status& status) { return status ? "fine" : status.error().message(); }
template <typename T>
std::string said(const Result<T>& result) {
  return result ? "fine" : result.error().message();
}

/// The rows ids + 1 of the table.
std::string rows_of(const std::shared_ptr<const LoadedPlan>& plan, const std::vector<int32_t>& ids,
                    HostTensor* rows = nullptr) {
  const auto session = value(CallSession::create(plan, kSymbols, {}));
  const auto call = value(BoundCall::create(session, "rows"));
  const CallerMemory in(i32_tensor(ids));
  const CallerMemory out(
      value(make_tensor(DType::f32, {static_cast<int64_t>(ids.size()), kCallWidth})));
  require(call->bind_input("ids", in.view()));
  require(call->bind_output("r", out.view()));
  if (Status done = call->run(); !done) return said(done);
  Status checked = call->check();
  if (rows) *rows = out.read();
  return said(checked);
}

TEST_CASE("weights come from host memory, from device memory, in place or computed") {
  Weighted host;
  HostTensor expected, rows;
  CHECK(rows_of(value(host.load(false)), {0, 5, 18}, &expected) == "fine");
  const size_t before = fake().handles();
  {
    // The f32 table is used in place; the f16 scale, which is cast, is computed from device memory.
    Weighted given;
    const CallerMemory table(given.weights.table);
    HostTensor dense = value(make_tensor(DType::f16, {kCallWidth}));
    copy_from(given.weights.scale_view(), dense.bytes);
    const CallerMemory scale(dense);
    given.options.host_weights.clear();
    given.options.device_weights = {{"model.table", table.view()}, {"model.scale", scale.view()}};
    size_t total = 0;
    given.options.progress = [&](size_t done, size_t all) {
      CHECK(done <= all);
      total = all;
      return true;
    };
    const auto plan = value(given.load(true));
    CHECK(total == kCallWidth * sizeof(float));
    CHECK(plan->executable().on_cuda()->weights().address(0) ==
          reinterpret_cast<CudaAddress>(table.view().data));
    CHECK(rows_of(plan, {0, 5, 18}, &rows) == "fine");
    CHECK(rows.bytes == expected.bytes);
    const HostTensor on_device = value(plan->executable().read_weight(1));
    CHECK(on_device.bytes == value(value(host.load(false))->executable().read_weight(1)).bytes);
  }
  {
    // At an address that kernels cannot read, the table is copied.
    Weighted given;
    HostTensor shifted = value(make_tensor(DType::f32, {20 * kCallWidth + 1}));
    std::copy(given.weights.table.bytes.begin(), given.weights.table.bytes.end(),
              shifted.bytes.begin() + 4);
    const CallerMemory memory(shifted);
    TensorView view = memory.view();
    view.data = static_cast<std::byte*>(view.data) + 4;
    view.dims = {20, kCallWidth};
    given.options.host_weights.erase("model.table");
    given.options.device_weights = {{"model.table", view}};
    const auto plan = value(given.load(true));
    CHECK(plan->executable().on_cuda()->weights().address(0) !=
          reinterpret_cast<CudaAddress>(view.data));
    CHECK(rows_of(plan, {0, 5, 18}, &rows) == "fine");
    CHECK(rows.bytes == expected.bytes);
  }
  CHECK(fake().handles() == before);
}

TEST_CASE("host weights with strides of every sign are read in their order") {
  Weighted given;
  HostTensor turned = value(make_tensor(DType::f32, {kCallWidth, 20}));
  const float* from = given.weights.table.data<float>();
  for (int64_t i = 0; i < 20; ++i)
    for (int64_t k = 0; k < kCallWidth; ++k)
      turned.data<float>()[k * 20 + 19 - i] = from[i * kCallWidth + k];
  TensorView view = view_of(turned);
  view.data = turned.data<float>() + 19;
  view.dims = {20, kCallWidth};
  view.strides = {-1, 20};
  given.options.host_weights["model.table"] = view;
  for (const bool on_gpu : {false, true})
    CHECK(value(value(given.load(on_gpu))->executable().read_weight(0)).bytes ==
          given.weights.table.bytes);
}

TEST_CASE("weights that do not belong to the plan are refused, and named") {
  for (const bool on_gpu : {false, true}) {
    {
      Weighted given;
      given.options.host_weights["lm_head"] = given.weights.table_view();
      CHECK(said(given.load(on_gpu)) ==
            "weight tensor lm_head: no weight of the plan is made of this tensor; give it the name "
            "that the model's files use");
    }
    {
      Weighted given;
      given.options.host_weights.erase("model.scale");
      CHECK(said(given.load(on_gpu)) ==
            "weight scale: no tensor \"model.scale\" is given; give it in host or device memory, "
            "or the model's files");
    }
    {
      Weighted given;
      given.options.host_weights["model.scale"].dims = {31};
      CHECK(said(given.load(on_gpu)) ==
            "weight tensor model.scale: the tensor is f16[31], the plan reads f16[32]; give the "
            "weights that belong to the model");
    }
    {
      Weighted given;
      given.options.host_weights["model.scale"].data = nullptr;
      CHECK(said(given.load(on_gpu)) ==
            "weight tensor model.scale: f16[32] has no memory; give its address");
    }
    {
      Weighted given;
      given.options.progress = [](size_t done, size_t) { return done == 0; };
      const size_t before = fake().handles();
      const std::string message = said(given.load(on_gpu));
      CHECK(message == "the loading was cancelled after 2560 of 2688 bytes of weights; load again");
      CHECK(fake().handles() == before);
    }
  }
  Weighted given;
  given.options.device_weights["model.table"] = given.weights.table_view();
  CHECK(said(given.load(false)) ==
        "weight tensor model.table: 1 tensors in device memory for the CPU; give them in host "
        "memory");
  CHECK(said(given.load(true)) ==
        "weight tensor model.table: the tensor is given in host memory and in device memory; give "
        "it once");
  given.options.host_weights.erase("model.table");
  given.options.device_weights["model.table"].strides = {64, 2};
  CHECK(
      said(given.load(true)) ==
      "weight tensor model.table: strides [64, 2] of f32[20, 32] in device memory, must be dense; "
      "copy the tensor, or give it in host memory");
}

/// A call of @step on valid memory, of which tests change one thing.
struct StepCall {
  explicit StepCall(const std::shared_ptr<const LoadedPlan>& plan, int64_t tokens = kCallTokens)
      : session(value(CallSession::create(plan, kSymbols, {}))),
        call(value(BoundCall::create(session, "step"))),
        inputs(CaseInputs::random(1, tokens)) {
    const auto output = [&](const char* name, std::vector<int64_t> dims) {
      outputs.emplace(name, CallerMemory(value(make_tensor(DType::f32, std::move(dims)))));
    };
    output("y", {tokens, kCallWidth});
    output("x", {tokens, kCallWidth});
    output("table", {20, kCallWidth});
    output("k", {kCallRows, kCallWidth});
    given.emplace("ids", CallerMemory(inputs.ids));
    given.emplace("slot", CallerMemory(inputs.slot));
    given.emplace("first", CallerMemory(inputs.first));
    given.emplace("x", CallerMemory(inputs.x));
    for (const auto& [name, memory] : given) require(call->bind_input(name, memory.view()));
    for (const auto& [name, memory] : outputs) require(call->bind_output(name, memory.view()));
  }
  void set(const char* name, size_t index, int32_t number) {
    static_cast<int32_t*>(given.at(name).view().data)[index] = number;
  }
  std::string run() {
    if (Status done = call->run(); !done) return said(done);
    return said(call->check());
  }
  std::shared_ptr<CallSession> session;
  std::unique_ptr<BoundCall> call;
  CaseInputs inputs;
  std::map<std::string, CallerMemory> given, outputs;
};

TEST_CASE("row numbers in device memory that name no row are reported after the call") {
  Weighted given;
  const auto on_gpu = value(given.load(true)), on_host = value(given.load(false));
  for (const auto& [name, number, rows] :
       {std::tuple("ids", 20, 20), {"ids", -1, 20}, {"slot", 16, 16}, {"first", -7, 16}}) {
    CAPTURE(name);
    StepCall device(on_gpu), host(on_host);
    CHECK(device.run() == "fine");
    CHECK(host.run() == "fine");
    for (StepCall* call : {&device, &host}) call->set(name, 1, number);
    const std::string reported =
        fmt::format("%{}[1] is {}, outside the 0 .. {} that it points into; check the inputs", name,
                    number, rows - 1);
    CHECK(host.run() == "entry step: " + reported);
    const std::string message = device.run();
    CAPTURE(message);
    CHECK(message.starts_with("entry step, %"));
    CHECK(message.ends_with(reported));
    device.set(name, 1, 0);
    CHECK(device.run() == "fine");
  }
  const std::string outside =
      "entry rows, %r: %i[1] is 20, outside the 0 .. 19 that it points into; the module computes "
      "it: check the module and the inputs";
  CHECK(rows_of(on_gpu, {3, 19}) == outside);
  CHECK(rows_of(on_host, {3, 19}) == outside);
  CHECK(rows_of(on_gpu, {3, 18}) == "fine");
}

TEST_CASE("a check asks about a call's own numbers, as they were bound, whatever runs since") {
  Weighted given;
  const auto plan = value(given.load(true));
  StepCall step(plan);
  CHECK(said(step.call->check()) == "entry step: the call has not run; check a call after its run");
  require(step.call->run());
  std::vector<std::unique_ptr<BoundCall>> others;
  std::vector<CallerMemory> memory;
  for (const int32_t id : {18, 19, 3}) {
    others.push_back(value(BoundCall::create(step.session, "rows")));
    memory.emplace_back(i32_tensor({1, id}));
    require(others.back()->bind_input("ids", memory.back().view()));
    memory.emplace_back(value(make_tensor(DType::f32, {2, kCallWidth})));
    require(others.back()->bind_output("r", memory.back().view()));
    require(others.back()->run());
  }
  CHECK(said(step.call->check()) == "fine");
  CHECK(said(others[0]->check()) == "fine");
  CHECK(said(others[1]->check()).starts_with("entry rows, %r: %i[1] is 20, outside the 0 .. 19"));
  CHECK(said(others[2]->check()) == "fine");
  require(step.call->bind_input("x", step.outputs.at("x").view()));
  CHECK(said(step.call->check()) ==
        "entry step: the call was bound again since it ran; check a call after its run");
}

TEST_CASE("a device refuses entries whose inputs nothing checks there, the host runs them") {
  const auto plain = calls_program(false);
  Weighted given;
  given.options.machine_code = host_machine_code(plain);
  const auto on_gpu = value(LoadedPlan::load(device_of(true), plain, given.options));
  const auto session = value(CallSession::create(on_gpu, kSymbols, {}));
  const std::string message = said(BoundCall::create(session, "step"));
  CAPTURE(message);
  CHECK(message.starts_with("entry step: kernel "));
  CHECK(message.ends_with(
      " for addresses, and nothing checks them in device memory; compile the plan with the option "
      "for inputs in device memory (device_inputs)"));
  require(BoundCall::create(session, "wide").has_value() ? Status() : fail("wide"));
  const auto on_host = value(LoadedPlan::load(device_of(false), plain, given.options));
  CHECK(StepCall(on_host).run() == "fine");
  // With the option, the plan says it of every entry.
  for (const EntryPlan& entry : calls_program()->entries)
    require(require_checked_inputs(*calls_program(), entry));
}

TEST_CASE("bad sessions are refused") {
  Weighted given;
  for (const bool on_gpu : {false, true}) {
    const auto plan = value(given.load(on_gpu));
    const auto create = [&](const std::map<std::string, int64_t>& symbols) {
      return said(CallSession::create(plan, symbols, {}));
    };
    CHECK(create({}) ==
          "the session: symbol R has no value, a size of state keys; give a value for each symbol "
          "of the states");
    CHECK(create({{"R", 16}, {"N", 3}}) ==
          "the session: symbol N is given as 3, no state has it; give the symbols of states alone; "
          "calls set the others");
    CHECK(
        create({{"R", 16}, {"Q", 3}}) ==
        "the session: symbol Q is given as 3, the plan has none of that name; give the symbols of "
        "states alone; calls set the others");
    CHECK(create({{"R", 72}}) != "fine");
    CHECK(create({{"R", 12}}) != "fine");
    const auto session = value(CallSession::create(plan, kSymbols, {}));
    HostTensor state = value(make_tensor(DType::f32, {kCallRows, kCallWidth}));
    CHECK(said(session->read_state("nothing", view_of(state))) ==
          "state nothing: the plan has no such state; check the name");
    TensorView view = view_of(state);
    view.dims = {8, 64};
    CHECK(said(session->read_state("keys", view)) ==
          "state keys: f32[8, 64] is given, the state is f32[16, 32]; give memory of the state's "
          "type");
    view = view_of(state);
    view.strides = {0, 1};
    CHECK(
        said(session->read_state("keys", view)) ==
        "state keys: strides [0, 1] put several elements of f32[16, 32] at one address; check the "
        "strides");
    CHECK(said(BoundCall::create(session, "none")) ==
          "called: the plan has no entry \"none\"; check the name");
  }
  int stream = 0;
  CHECK(said(CallSession::create(value(given.load(false)), kSymbols, &stream)) ==
        "the session: a stream is given, the CPU has none; give no stream");
}

TEST_CASE("bad tensors and symbols are refused, and the argument is named") {
  Weighted given;
  for (const bool on_gpu : {false, true}) {
    CAPTURE(on_gpu);
    const auto plan = value(given.load(on_gpu));
    StepCall step(plan);
    BoundCall& call = *step.call;
    const TensorView x = step.given.at("x").view(), y = step.outputs.at("y").view();
    CHECK(said(call.bind_input("z", x)) ==
          "entry step: no input is called \"z\"; it has ids, slot, first, x");
    CHECK(said(call.bind_output("z", x)) ==
          "entry step: no output is called \"z\"; it has y, x, table, k");
    TensorView bad = x;
    bad.dtype = DType::i32;
    CHECK(
        said(call.bind_input("x", bad)) ==
        "entry step, input x: i32[3, 32] is given, f32[N, 32] is wanted; check the tensor's type");
    bad = x;
    bad.dims = {3, 31};
    CHECK(
        said(call.bind_input("x", bad)) ==
        "entry step, input x: f32[3, 31] is given, f32[N, 32] is wanted; check the tensor's type");
    bad.dims = {3};
    CHECK(said(call.bind_input("x", bad)) ==
          "entry step, input x: f32[3] is given, f32[N, 32] is wanted; check the tensor's type");
    bad = x;
    bad.data = nullptr;
    CHECK(said(call.bind_input("x", bad)) ==
          "entry step, input x: f32[3, 32] has no memory; give its address");
    bad = x;
    bad.strides = {1};
    CHECK(said(call.bind_input("x", bad)) ==
          "entry step, input x: 1 strides for 2 extents; give one stride for each extent, or none");
    bad = x;
    bad.dims = {-3, 32};
    CHECK(said(call.bind_input("x", bad)) ==
          "entry step, input x: an extent is -3, must be at least 0; check the sizes");
    bad.dims = {int64_t{1} << 50, 32};
    CHECK(said(call.bind_input("x", bad)).find(" has more than ") != std::string::npos);
    bad = x;
    bad.strides = {INT64_MAX, 1};
    CHECK(said(call.bind_input("x", bad)).find("leaves the address space") != std::string::npos);
    bad = y;
    bad.strides = {0, 1};
    CHECK(said(call.bind_output("y", bad)) ==
          "entry step, output y: strides [0, 1] put several elements of f32[3, 32] at one address; "
          "check the strides");
    CHECK(said(call.set_symbol("Q", 1)) == "entry step: no symbol is called \"Q\"; check the name");
    CHECK(said(call.set_symbol("R", 24)) ==
          "entry step: symbol R is set to 24, the session's states were made with 16; make another "
          "session");
    CHECK(said(call.set_symbol("N", 9)) != "fine");
    CHECK(step.run() == "fine");
    require(call.set_symbol("N", 2));
    CHECK(step.run() ==
          "entry step: symbol N is 2 by set_symbol and 3 by input ids; check the shapes");
    require(call.set_symbol("N", 3));
    CHECK(step.run() == "fine");
    bad = x;
    bad.dims = {2, 32};
    require(call.bind_input("x", bad));
    CHECK(step.run() ==
          "entry step: symbol N is 3 by set_symbol and 2 by input x; check the shapes");
    CHECK(said(call.output_dims("y")) ==
          "entry step: symbol N is 3 by set_symbol and 2 by input x; check the shapes");
    require(call.bind_input("x", x));
    bad = y;
    bad.dims = {2, 32};
    require(call.bind_output("y", bad));
    CHECK(step.run() ==
          "entry step, output y: f32[2, 32] is given, f32[3, 32] is wanted, that is f32[N, 32]; "
          "check the tensor's shape");
    require(call.bind_output("y", step.outputs.at("x").view()));
    CHECK(step.run() ==
          "entry step, output x: its memory overlaps that of output y; give each output memory of "
          "its own");
    require(call.bind_output("y", x));
    CHECK(step.run() == (on_gpu ? "entry step, output y: its memory overlaps that of input x; give "
                                  "each output memory of its own"
                                : "fine"));
    require(call.bind_output("y", y));
    CHECK(said(call.bind_state("cache", x)) ==
          "entry step: no state is called \"cache\"; it has keys, values");
    CHECK(said(call.bind_state("keys", x)) ==
          "fine");  // R may be 3 by its type, the session's is 16
    CHECK(step.run() ==
          "entry step, state keys: f32[3, 32] is given, f32[16, 32] is wanted, that is f32[R, 32]; "
          "check the tensor's shape");
    const CallerMemory rows(value(make_tensor(DType::f32, {kCallRows, kCallWidth})));
    bad = rows.view();
    bad.strides = {0, 1};
    CHECK(said(call.bind_state("keys", bad)) ==
          "entry step, state keys: strides [0, 1] put several elements of f32[16, 32] at one "
          "address; check the strides");
    require(call.bind_state("keys", rows.view()));
    require(call.bind_state("values", rows.view()));
    CHECK(step.run() ==
          "entry step, state values: its memory overlaps that of state keys; give each state "
          "memory of its own");
    const CallerMemory others(value(make_tensor(DType::f32, {kCallRows, kCallWidth})));
    require(call.bind_state("values", others.view()));
    CHECK(step.run() == "fine");
    if (!on_gpu) continue;
    bad = x;
    bad.strides = {64, 2};
    CHECK(said(call.bind_input("x", bad)) ==
          "entry step, input x: strides [64, 2] of f32[3, 32], device memory must be dense; copy "
          "the tensor");
    bad = x;
    bad.data = static_cast<std::byte*>(x.data) + 8;
    const std::string message = said(call.bind_input("x", bad));
    CAPTURE(message);
    CHECK(message.starts_with("entry step, input x: address 0x"));
    CHECK(
        message.ends_with(" is aligned to 8 bytes, kernels need 16; copy the tensor to memory of "
                          "its own"));
  }
}

TEST_CASE("groups of steps come in their order, with memory for what they use") {
  Weighted given;
  for (const bool on_gpu : {false, true}) {
    CAPTURE(on_gpu);
    StepCall step(value(given.load(on_gpu)));
    BoundCall& call = *step.call;
    CHECK(
        said(call.run_steps(0, 1)) ==
        "entry step: the call does not run in groups of steps; allow groups before its tensors are "
        "bound");
    call.allow_groups();
    const size_t steps = value(call.step_count());
    const auto run = [&](size_t first, size_t last) { return said(call.run_steps(first, last)); };
    CHECK(run(0, steps + 1) ==
          fmt::format(
              "entry step: steps 0 to {} are asked for, it has {}; give a first step, and the "
              "one behind the last",
              steps + 1, steps));
    CHECK(run(0, 0).find("steps 0 to 0 are asked for") != std::string::npos);
    CHECK(run(0, steps) == "fine");
    TensorView x = step.given.at("x").view();
    void* const memory = std::exchange(x.data, nullptr);
    require(call.bind_input("x", x));
    CHECK(run(0, steps) ==
          fmt::format(
              "entry step, input x: f32[3, 32] has no memory, and steps 0 to {} need it; give "
              "its address",
              steps));
    CHECK(step.run().find("input x: f32[3, 32] has no memory") != std::string::npos);
    x.data = memory;
    require(call.bind_input("x", x));
    TensorView y = step.outputs.at("y").view();
    y.data = nullptr;
    require(call.bind_output("y", y));
    CHECK(run(0, steps).find("output y: f32[3, 32] has no memory") != std::string::npos);
    if (!on_gpu) continue;
    REQUIRE(steps > 2);
    CHECK(run(1, 2) ==
          "entry step: steps 1 to 2 are asked for, the next one is 0; run the groups of a call in "
          "their order");
    y.data = step.outputs.at("y").view().data;
    require(call.bind_output("y", y));
    CHECK(run(0, 1) == "fine");
    CHECK(run(2, 3).find("the next one is 1") != std::string::npos);
    CHECK(run(1, 2) == "fine");
    CHECK(run(0, 1) == "fine");  // anew
    CHECK(said(call.check()).find("the call has not run") != std::string::npos);
    const auto other = value(BoundCall::create(step.session, "step"));
    for (const auto& [name, memory] : step.given) require(other->bind_input(name, memory.view()));
    for (const auto& [name, memory] : step.outputs)
      require(other->bind_output(name, memory.view()));
    require(other->run());
    CHECK(run(1, 2).find("another call has run between two groups") != std::string::npos);
    CHECK(run(0, steps) == "fine");
    CHECK(said(call.check()) == "fine");
  }
}

TEST_CASE("addresses that do not fit are refused, and nothing moves") {
  Weighted given;
  for (const bool on_gpu : {false, true}) {
    CAPTURE(on_gpu);
    StepCall step(value(given.load(on_gpu)));
    CHECK(step.run() == "fine");
    const EntryPlan& entry = *step.session->plan().program().find_entry("step");
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    for (const uint32_t id : entry.inputs)
      inputs.push_back(step.given.at(entry.buffers[id].value).view().data);
    for (const std::string& name : entry.output_names)
      outputs.push_back(step.outputs.at(name).view().data);
    const auto set = [&] { return said(step.call->set_addresses(inputs, outputs)); };
    CHECK(set() == "fine");
    CHECK(said(step.call->check()) == "fine");  // nothing moved, so the last run counts
    const size_t x = 3;
    REQUIRE(entry.buffers[entry.inputs[x]].value == "x");
    const void* const before = inputs[x];
    inputs[x] = nullptr;
    CHECK(set() == "entry step, input x: f32[3, 32] has no memory; give its address");
    inputs[x] = before;
    void* const y = outputs[0];
    outputs[0] = outputs[1];
    CHECK(set() ==
          "entry step, output x: its memory overlaps that of output y; give each output memory of "
          "its own");
    outputs[0] = const_cast<void*>(before);
    CHECK(set() == (on_gpu ? "entry step, output y: its memory overlaps that of input x; give each "
                             "output memory of its own"
                           : "fine"));
    outputs[0] = y;
    CHECK(set() == "fine");
    if (on_gpu) {
      inputs[x] = static_cast<const std::byte*>(before) + 4;
      CHECK(set().ends_with(
          " is aligned to 4 bytes, kernels need 16; copy the tensor to memory of its own"));
      inputs[x] = before;
    }
    CHECK(step.run() == "fine");
    inputs.pop_back();
    CHECK(set() == fmt::format("entry step: 3 inputs and {} outputs are given, it has 4 and {}; "
                               "give an address for each",
                               outputs.size(), outputs.size()));
    const auto call = value(BoundCall::create(step.session, "rows"));
    CHECK(said(call->set_addresses({before}, {y})) ==
          "entry rows, input ids: no tensor is bound yet, and an address has no extents; bind a "
          "tensor first");
  }
}

TEST_CASE("a check after a move asks for a run") {
  Weighted given;
  StepCall step(value(given.load(true)));
  CHECK(step.run() == "fine");
  const EntryPlan& entry = *step.session->plan().program().find_entry("step");
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  const CallerMemory ids(i32_tensor({1, 20, 3}));
  for (const uint32_t id : entry.inputs)
    inputs.push_back(entry.buffers[id].value == "ids"
                         ? ids.view().data
                         : step.given.at(entry.buffers[id].value).view().data);
  for (const std::string& name : entry.output_names)
    outputs.push_back(step.outputs.at(name).view().data);
  require(step.call->set_addresses(inputs, outputs));
  CHECK(said(step.call->check()) ==
        "entry step: the call was bound again since it ran; check a call after its run");
  CHECK(step.run().ends_with(
      "%ids[1] is 20, outside the 0 .. 19 that it points into; check the inputs"));
}

TEST_CASE("what is missing when a call runs is named") {
  Weighted given;
  for (const bool on_gpu : {false, true}) {
    const auto plan = value(given.load(on_gpu));
    const auto session = value(CallSession::create(plan, kSymbols, {}));
    const auto call = value(BoundCall::create(session, "rows"));
    const std::string unknown =
        "entry rows: symbol N has no value yet; set it, or bind an input whose shape has it";
    CHECK(said(call->output_dims("r")) == unknown);
    CHECK(said(call->run()) ==
          "entry rows, input ids: no tensor is bound, i32[N] is wanted; bind one");
    require(call->set_symbol("N", 2));
    CHECK(value(call->output_dims("r")) == std::vector<int64_t>{2, kCallWidth});
    const CallerMemory ids(i32_tensor({1, 2}));
    TensorView many = ids.view();
    many.dims = {int64_t{1} << 40};
    const auto other = value(BoundCall::create(session, "rows"));
    require(other->bind_input("ids", many));
    const std::string beyond =
        "entry rows, input ids: N is 1099511627776, the plan is for 1 to 8 in steps of 1; split "
        "the call or compile the model for another range";
    CHECK(said(other->output_dims("r")) == beyond);
    CHECK(said(other->prepare()) == beyond);
    require(call->bind_input("ids", ids.view()));
    CHECK(said(call->run()) ==
          "entry rows, output r: no tensor is bound, f32[N, 32] is wanted; bind one");
  }
}

TEST_CASE("on the CPU, inputs and outputs may have strides of every sign") {
  Weighted given;
  const auto plan = value(given.load(false));
  StepCall dense(plan), strided(plan);
  CHECK(dense.run() == "fine");
  HostTensor in = value(make_tensor(DType::f32, {kCallWidth, kCallTokens})),
             out = value(make_tensor(DType::f32, {kCallTokens, 3, kCallWidth}));
  const float* x = dense.inputs.x.data<float>();
  for (int64_t i = 0; i < kCallTokens; ++i)
    for (int64_t k = 0; k < kCallWidth; ++k)
      in.data<float>()[k * kCallTokens + i] = x[i * kCallWidth + k];
  require(strided.call->bind_input(
      "x", {in.data<float>(), DType::f32, {kCallTokens, kCallWidth}, {1, kCallTokens}}));
  require(strided.call->bind_output("y", {out.data<float>() + kCallWidth - 1,
                                          DType::f32,
                                          {kCallTokens, kCallWidth},
                                          {3 * kCallWidth, -1}}));
  CHECK(strided.run() == "fine");
  const HostTensor y = dense.outputs.at("y").read();
  for (int64_t i = 0; i < kCallTokens; ++i)
    for (int64_t k = 0; k < kCallWidth; ++k)
      REQUIRE(out.data<float>()[3 * i * kCallWidth + kCallWidth - 1 - k] ==
              y.data<float>()[i * kCallWidth + k]);
}

TEST_CASE("bad devices are refused") {
  fake();
  GpuOptions options;
  options.ordinal = 7;
  CHECK(said(Device::gpu(options)).find("no CUDA device 7: the driver shows 1") !=
        std::string::npos);
  options.ordinal = 0;
  options.allocate = [](size_t, void*) -> void* { return nullptr; };
  CHECK(said(Device::gpu(options)) ==
        "the device's options: an allocator without release and with allocate; give both functions "
        "or none");
  options.allocate = {};
  options.context = fake().make_context(1);
  CHECK(said(Device::gpu(options)) ==
        "device 0 (Fake GPU 0): the context is one of device 1, not of device 0; give the ordinal "
        "of the context's device");
  const auto device = device_of(true);
  CHECK(device->name() == "cuda:0 (Fake GPU 0)");
  CHECK(device->target() == device->cuda()->arch());
  CHECK(Device::cpu()->name() == "cpu");
  CHECK(Device::cpu()->target().empty());
}

}  // namespace
}  // namespace sinter::calls_errors_test
