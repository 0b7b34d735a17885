#include "plan/program_builder.h"

#include "plan/kernel_text.h"

namespace sinter::test {

std::string stated_text(const Kernel& kernel, llvm::ArrayRef<Symbol> symbols) {
  return fmt::format("{}{}{}{}({}) {{\n}}\n", group_comment(kernel, symbols),
                     launch_comment(kernel, symbols), function_head(kernel.launch, 0), kernel.name,
                     parameters_of(kernel.group, kernel.symbols.size(), !kernel.overlap.waits, 0,
                                   kernel.in_place));
}

ProgramBuilder::ProgramBuilder() {
  program.name = "test";
  program.numerics = Numerics::strict;
  program.target = "sm_90a";
  program.entries.emplace_back().name = "forward";
}

Dim ProgramBuilder::symbol(std::string name, int64_t low, int64_t high) {
  program.symbols.push_back({.name = std::move(name), .low = low, .high = high});
  return Dim(SymbolId{static_cast<uint32_t>(program.symbols.size() - 1)});
}

uint32_t ProgramBuilder::weight(std::string name, TensorType type,
                                const std::function<ValueId(Builder&)>& init) {
  Weight weight{std::move(name), std::move(type), {}};
  Builder builder(weight.init, program.symbols);
  weight.init.outputs.push_back(init(builder));
  program.weights.push_back(std::move(weight));
  return static_cast<uint32_t>(program.weights.size() - 1);
}

uint32_t ProgramBuilder::state(std::string name, TensorType type) {
  program.states.push_back({std::move(name), std::move(type)});
  return static_cast<uint32_t>(program.states.size() - 1);
}

uint32_t ProgramBuilder::add(std::string name, TensorType type, Buffer::Place place,
                             uint32_t index) {
  Buffer buffer;
  buffer.value = std::move(name);
  buffer.size_bytes = storage_bytes(type);
  buffer.type = std::move(type);
  buffer.place = place;
  buffer.index = index;
  entry().buffers.push_back(std::move(buffer));
  return static_cast<uint32_t>(entry().buffers.size() - 1);
}

uint32_t ProgramBuilder::input(std::string name, TensorType type) {
  const uint32_t id = add(std::move(name), std::move(type), Buffer::Place::input,
                          static_cast<uint32_t>(entry().inputs.size()));
  entry().inputs.push_back(id);
  return id;
}

uint32_t ProgramBuilder::arena(std::string name, TensorType type, uint32_t slot) {
  const uint32_t id = add(std::move(name), std::move(type), Buffer::Place::arena, 0);
  entry().buffers[id].slot = slot;
  return id;
}

uint32_t ProgramBuilder::weight_buffer(uint32_t index) {
  const Weight& weight = program.weights[index];
  return add(weight.name, weight.type, Buffer::Place::weight, index);
}

uint32_t ProgramBuilder::state_buffer(uint32_t index, uint32_t version, std::string value) {
  const uint32_t id =
      add(std::move(value), program.states[index].type, Buffer::Place::state, index);
  entry().buffers[id].version = version;
  return id;
}

void ProgramBuilder::output(uint32_t buffer) {
  entry().outputs.push_back(buffer);
  entry().output_names.push_back(entry().buffers[buffer].value);
}

KernelStep& ProgramBuilder::kernel(
    std::string name, std::vector<uint32_t> inputs, std::vector<uint32_t> outputs,
    const std::function<std::vector<ValueId>(Builder&, std::vector<ValueId>)>& body) {
  Kernel kernel;
  kernel.name = std::move(name);
  Builder builder(kernel.group, program.symbols);
  std::vector<ValueId> parameters;
  for (uint32_t input : inputs)
    parameters.push_back(builder.leaf(OpKind::input, entry().buffers[input].type,
                                      fmt::format("in{}", parameters.size())));
  for (ValueId result : body(builder, parameters)) {
    // Not by roles, of which tests plant wrong ones.
    if (const OpKind kind = kernel.group[result].kind;
        kind == OpKind::kv_append || kind == OpKind::store)
      kernel.appends.push_back(static_cast<uint32_t>(kernel.group.outputs.size()));
    kernel.group.outputs.push_back(result);
  }
  kernel.launch.rows = entry().buffers[outputs[0]].type.rank() == 0
                           ? SymExpr(1)
                           : SymExpr(entry().buffers[outputs[0]].type.dims[0]);
  kernel.symbols = symbols_of(kernel.group);
  kernel.source = stated_text(kernel, program.symbols);
  Step& step = entry().steps.emplace_back();
  for (uint32_t output : outputs) step.values.push_back(entry().buffers[output].value);
  const auto id = static_cast<uint32_t>(program.kernels.size());
  program.kernels.push_back(std::move(kernel));
  return step.run.emplace<KernelStep>(KernelStep{id, std::move(inputs), std::move(outputs)});
}

GemmStep& ProgramBuilder::gemm(uint32_t a, uint32_t b, uint32_t c, SymExpr m, SymExpr n,
                               SymExpr k) {
  GemmStep gemm;
  gemm.a = {a, 0, k, 1};
  gemm.b = {b, 0, n, 1};
  gemm.c = {c, 0, n, 1};
  gemm.m = std::move(m);
  gemm.n = std::move(n);
  gemm.k = std::move(k);
  Step& step = entry().steps.emplace_back();
  step.values.push_back(entry().buffers[c].value);
  return step.run.emplace<GemmStep>(std::move(gemm));
}

CopyStep& ProgramBuilder::copy(uint32_t from, uint32_t to) {
  Step& step = entry().steps.emplace_back();
  step.values.push_back(entry().buffers[to].value);
  return step.run.emplace<CopyStep>(CopyStep{from, to});
}

CollectiveStep& ProgramBuilder::all_reduce(uint32_t from, uint32_t to) {
  CollectiveStep run;
  run.from = from;
  run.exchange =
      add(entry().buffers[to].value, entry().buffers[to].type, Buffer::Place::exchange, 0);
  run.to = to;
  run.group = "tp";
  Step& step = entry().steps.emplace_back();
  step.values.push_back(entry().buffers[to].value);
  return step.run.emplace<CollectiveStep>(std::move(run));
}

Program ProgramBuilder::finish() {
  EntryPlan& plan = entry();
  auto write = [&](uint32_t id, size_t step) {
    plan.buffers[id].first_step = plan.buffers[id].last_step = static_cast<uint32_t>(step);
  };
  auto read = [&](uint32_t id, size_t step) {
    if (plan.buffers[id].place == Buffer::Place::arena)
      plan.buffers[id].last_step = static_cast<uint32_t>(step);
  };
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const StepFacts facts = step_facts(program, plan.steps[i]);
    for (uint32_t id : facts.reads) read(id, i);
    for (uint32_t id : facts.writes)
      if (plan.buffers[id].place == Buffer::Place::arena) write(id, i);
  }
  for (uint32_t id : plan.outputs) read(id, plan.steps.size());
  for (const RowCheck& check : plan.row_checks) read(check.buffer, plan.steps.size());
  return program;
}

namespace {

template <typename Kind>
Kind& step_of(EntryPlan& entry, size_t index) {
  Kind* found = nullptr;
  const auto take = [&](auto& run) {
    if constexpr (std::is_same_v<std::remove_reference_t<decltype(run)>, Kind>) found = &run;
  };
  visit(
      entry.steps[index], [&](KernelStep& run) { take(run); }, [&](GemmStep& run) { take(run); },
      [&](CopyStep& run) { take(run); }, [&](CollectiveStep& run) { take(run); });
  SINTER_CHECK(found != nullptr, "step {} is of another kind", index);
  return *found;
}

}  // namespace

KernelStep& kernel_step(EntryPlan& entry, size_t index) {
  return step_of<KernelStep>(entry, index);
}
GemmStep& gemm_step(EntryPlan& entry, size_t index) { return step_of<GemmStep>(entry, index); }
CopyStep& copy_step(EntryPlan& entry, size_t index) { return step_of<CopyStep>(entry, index); }

CollectiveStep& collective_step(EntryPlan& entry, size_t index) {
  return step_of<CollectiveStep>(entry, index);
}

Program reducing_program() {
  ProgramBuilder p;
  const TensorType tokens{DType::f32, {p.symbol("N", 1, 64), 64}};
  const uint32_t x = p.input("x", tokens), a = p.arena("a", tokens, 0);
  const uint32_t b = p.arena("b", tokens, 1), y = p.arena("y", tokens, 2);
  p.kernel("neg", {x}, {a},
           [](Builder& g, std::vector<ValueId> in) { return std::vector{g.neg(in[0])}; });
  p.all_reduce(a, b);
  p.kernel("add", {b, a}, {y},
           [](Builder& g, std::vector<ValueId> in) { return std::vector{g.add(in[0], in[1])}; });
  p.output(y);
  return p.finish();
}

Program copying_program() {
  ProgramBuilder p;
  const TensorType tokens{DType::f32, {p.symbol("N", 1, 64), 64}};
  const uint32_t x = p.input("x", tokens), a = p.arena("a", tokens, 0);
  const uint32_t b = p.arena("b", tokens, 1), y = p.arena("y", tokens, 2);
  p.kernel("neg", {x}, {a},
           [](Builder& g, std::vector<ValueId> in) { return std::vector{g.neg(in[0])}; });
  p.copy(a, b);
  p.kernel("add", {b, a}, {y},
           [](Builder& g, std::vector<ValueId> in) { return std::vector{g.add(in[0], in[1])}; });
  for (Kernel& kernel : p.program.kernels) kernel.symbols = {tokens.dims[0].symbol()};
  p.output(y);
  return p.finish();
}

Program sample_program() {
  ProgramBuilder p;
  const Dim n = p.symbol("N", 1, 64), rows = p.symbol("R", 8, 128);
  const TensorType tokens{DType::f32, {n, 64}}, ids{DType::i32, {n}};
  const uint32_t w = p.weight("w", {DType::f32, {64, 64}}, [](Builder& b) {
    return b.op(OpKind::file, {},
                Attributes()
                    .set(AttrName::dims, Dims{64, 64})
                    .set(AttrName::dtype, DType::f32)
                    .set(AttrName::tensor, std::string("w")),
                "w");
  });
  const uint32_t bias = p.weight("bias", {DType::f32, {64}}, [](Builder& b) {
    return b.op(OpKind::constant, {},
                Attributes()
                    .set(AttrName::dims, Dims{64})
                    .set(AttrName::dtype, DType::f32)
                    .set(AttrName::value, 0.5),
                "bias");
  });
  const uint32_t cache = p.state("cache", {DType::f32, {rows, 64}});
  const uint32_t x = p.input("x", tokens), slot = p.input("slot", ids);
  const uint32_t wb = p.weight_buffer(w), bb = p.weight_buffer(bias);
  const uint32_t k0 = p.state_buffer(cache, 0, "k0"), k1 = p.state_buffer(cache, 1, "k1");
  const uint32_t a = p.arena("a", tokens, 0), b = p.arena("b", tokens, 1);
  const uint32_t c = p.arena("c", tokens, 0);
  const uint32_t d = p.arena("d", tokens, 2);
  const uint32_t y = p.arena("y", tokens, 1);
  p.kernel("neg", {x}, {a},
           [](Builder& g, std::vector<ValueId> in) { return std::vector{g.neg(in[0])}; });
  p.kernel("exp", {a}, {b},
           [](Builder& g, std::vector<ValueId> in) { return std::vector{g.exp(in[0])}; });
  p.gemm(b, wb, c, SymExpr(n), 64, 64).bias = bb;
  p.kernel("append", {k0, c, slot}, {k1}, [](Builder& g, std::vector<ValueId> in) {
    return std::vector{g.op(OpKind::kv_append, {in[0], in[1], in[2]})};
  });
  p.kernel("lookup", {k1, slot}, {d}, [](Builder& g, std::vector<ValueId> in) {
    return std::vector{g.abs(g.op(OpKind::embedding, {in[0], in[1]}))};
  });
  p.kernel("add", {c, d}, {y},
           [](Builder& g, std::vector<ValueId> in) { return std::vector{g.add(in[0], in[1])}; });
  p.output(y);
  return p.finish();
}

namespace {

Program overlapping_program(ProgramBuilder& p, Dim tokens, Dim slot_count, int64_t keys_from) {
  const Dim rows = keys_from == 0 ? p.symbol("R", 8, 64) : Dim(64);
  const TensorType cache{DType::f32, {rows, 32}}, queries{DType::f32, {tokens, 64}};
  const uint32_t keys = p.state("keys", cache), values = p.state("values", cache);
  const uint32_t x = p.input("x", queries), k = p.input("k", {DType::f32, {slot_count, 32}});
  const uint32_t first = p.input("first", {DType::i32, {tokens}});
  const uint32_t slots = p.input("slots", {DType::i32, {slot_count}});
  const uint32_t k0 = p.state_buffer(keys, 0, "k0"), k1 = p.state_buffer(keys, 1, "k1");
  const uint32_t v0 = p.state_buffer(values, 0, "v0"), v1 = p.state_buffer(values, 1, "v1");
  const uint32_t a = p.arena("a", queries, 0), o = p.arena("o", queries, 1);
  const uint32_t y = p.arena("y", queries, 2);
  p.kernel("neg", {x}, {a},
           [](Builder& g, std::vector<ValueId> in) { return std::vector{g.neg(in[0])}; });
  p.kernel("append", {k0, v0, k, slots}, {k1, v1}, [](Builder& g, std::vector<ValueId> in) {
    return std::vector{g.op(OpKind::kv_append, {in[0], in[2], in[3]}),
                       g.op(OpKind::kv_append, {in[1], in[2], in[3]})};
  });
  p.kernel("attend", {a, k1, v1, first, slots}, {o}, [&](Builder& g, std::vector<ValueId> in) {
    const auto rows_of = [&](ValueId id, int64_t begin, Dim size) {
      return g.op(OpKind::slice, {id},
                  Attributes()
                      .set(AttrName::axis, int64_t{0})
                      .set(AttrName::begin, begin)
                      .set(AttrName::size, size));
    };
    if (tokens != slot_count) in[4] = rows_of(in[4], 0, tokens);
    if (keys_from > 0)
      for (ValueId* cache : {&in[1], &in[2]})
        *cache = rows_of(*cache, keys_from, Dim(64 - keys_from));
    return std::vector{g.op(OpKind::attention, in,
                            Attributes()
                                .set(AttrName::order, Order::decode_attention)
                                .set(AttrName::heads, int64_t{4})
                                .set(AttrName::kv_heads, int64_t{2})
                                .set(AttrName::scale, 0.25)
                                .set(AttrName::splits, int64_t{2}))};
  });
  p.kernel("add", {o, a}, {y},
           [](Builder& g, std::vector<ValueId> in) { return std::vector{g.add(in[0], in[1])}; });
  p.output(y);
  p.program.kernels[0].overlap = {true, false, {}, {}};
  p.program.kernels[1].overlap = {true, true, {}, {}};
  p.program.kernels[1].launch.rows = SymExpr(slot_count);
  p.program.kernels[2].overlap = {true, false, {0, 3, 4}, {1, 2}};
  p.program.kernels[3].overlap = {true, false, {1}, {}};
  return p.finish();
}

}  // namespace

Program gathering_program() {
  ProgramBuilder p;
  const Dim n = p.symbol("N", 1, 64);
  const uint32_t numbers = p.input("n", {DType::i32, {n}});
  const uint32_t table = p.input("table", {DType::f32, {32, 16}});
  const uint32_t i = p.arena("i", {DType::i32, {n}}, 0);
  const uint32_t y = p.arena("y", {DType::f32, {n, 16}}, 1);
  p.kernel("add", {numbers}, {i},
           [](Builder& g, std::vector<ValueId> in) { return std::vector{g.add(in[0], in[0])}; });
  p.kernel("gather", {table, i}, {y}, [](Builder& g, std::vector<ValueId> in) {
    return std::vector{
        g.op(OpKind::embedding, in, Attributes().set(AttrName::checked, int64_t{1}))};
  });
  p.output(y);
  p.entry().row_checks.push_back({i, 32, "y"});
  return p.finish();
}

Program overlapping_program() {
  ProgramBuilder p;
  const Dim tokens = p.symbol("B", 1, 8);
  return overlapping_program(p, tokens, tokens, 0);
}

Program overlapping_program(int64_t tokens, int64_t slots, int64_t keys_from) {
  ProgramBuilder p;
  return overlapping_program(p, tokens, slots, keys_from);
}

}  // namespace sinter::test
