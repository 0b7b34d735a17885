// Plans with changed numbers: the checker refuses them, or they run and read no memory that no step
// has written. SINTER_MUTATIONS sets the number of plans.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>

#include "ir/tensor_source.h"
#include "plan/checker.h"
#include "plan/program_builder.h"
#include "runtime/host/executor.h"
#include "runtime/random_inputs.h"
#include "support/result.h"

namespace sinter {
namespace {

class OneMatrix : public TensorSource {
 public:
  std::optional<TensorType> find(std::string_view) const override {
    return TensorType{DType::f32, {64, 64}};
  }
  Status read(std::string_view, std::span<std::byte> out) const override {
    std::memcpy(out.data(), matrix_.bytes.data(), out.size());
    return {};
  }

 private:
  HostTensor matrix_ = *random_tensor(DType::f32, {64, 64}, 1, {0.1, 0, 0});
};

class Mutator {
 public:
  explicit Mutator(uint32_t seed) : random_(seed) {}

  void mutate(Program& program) {
    EntryPlan& entry = program.entries[0];
    switch (below(8)) {
      case 0:
      case 1:
      case 2: {
        GemmStep& gemm = test::gemm_step(entry, 2);
        SymExpr* sizes[] = {&gemm.m,
                            &gemm.n,
                            &gemm.k,
                            &gemm.a.offset,
                            &gemm.a.row_stride,
                            &gemm.a.column_stride,
                            &gemm.b.offset,
                            &gemm.b.row_stride,
                            &gemm.b.column_stride,
                            &gemm.c.offset,
                            &gemm.c.row_stride,
                            &gemm.c.column_stride};
        change(*sizes[below(std::size(sizes))]);
        return;
      }
      case 3: {
        GemmStep& gemm = test::gemm_step(entry, 2);
        gemm.loops.push_back({size(), size(), size(), size()});
        return;
      }
      case 4:
        entry.buffers[below(entry.buffers.size())].slot = below(4);
        return;
      case 5: {
        // More space than the value needs is no fault by itself.
        Buffer& buffer = entry.buffers[below(entry.buffers.size())];
        buffer.size_bytes = buffer.size_bytes * SymExpr(1 + below(3));
        return;
      }
      case 6: {
        KernelStep& kernel = test::kernel_step(entry, below(2) == 0 ? below(2) : 3 + below(3));
        auto& list = below(2) == 0 ? kernel.inputs : kernel.outputs;
        list[below(list.size())] = below(entry.buffers.size());
        return;
      }
      default:
        std::swap(entry.steps[below(entry.steps.size())], entry.steps[below(entry.steps.size())]);
    }
  }

  uint32_t below(size_t count) { return static_cast<uint32_t>(random_() % count); }

 private:
  SymExpr size() {
    const SymExpr n = Dim(SymbolId{0});
    const SymExpr sizes[] = {
        0, 1, 2, 32, 64, 128, n, n * SymExpr(64), n * SymExpr(32), n - SymExpr(1)};
    return sizes[below(std::size(sizes))];
  }
  void change(SymExpr& expr) {
    switch (below(4)) {
      case 0:
        expr = expr + SymExpr(below(2) == 0 ? 1 : -1);
        return;
      case 1:
        expr = expr * SymExpr(2);
        return;
      default:
        expr = size();
    }
  }

  std::mt19937 random_;
};

size_t count_of_plans() {
  const char* given = std::getenv("SINTER_MUTATIONS");
  size_t count = 0;
  for (; given && *given >= '0' && *given <= '9'; ++given)
    count = count * 10 + static_cast<size_t>(*given - '0');
  return count > 0 ? count : 400;
}

TEST_CASE("a mutated plan is refused, or reads only what steps have written") {
  const OneMatrix source;
  const std::vector<int64_t> symbols = {5, 16};
  const HostTensor x = *random_tensor(DType::f32, {5, 64}, 2);
  HostTensor slots = *make_tensor(DType::i32, {5});
  const int32_t numbers[] = {3, 0, 9, 15, 4};
  std::memcpy(slots.bytes.data(), numbers, sizeof numbers);
  size_t accepted = 0;
  for (size_t i = 0; i < count_of_plans(); ++i) {
    CAPTURE(i);
    Mutator mutator(static_cast<uint32_t>(i));
    Program program = test::sample_program();
    bool is_whole = true;  // the product is where the next mutation looks for it
    for (uint32_t left = 1 + mutator.below(2); left > 0 && is_whole; --left) {
      mutator.mutate(program);
      is_whole = step_facts(program, program.entries[0].steps[2]).kernel == nullptr;
    }
    if (!check(program)) continue;
    ++accepted;
    const HostModel model =
        value(HostModel::load(std::make_shared<const Program>(std::move(program)), &source));
    std::optional<std::vector<std::byte>> plain;
    for (const bool poison : {false, true}) {
      HostSession session = value(HostSession::create(model, symbols));
      CallOptions options;
      options.poison_freed = poison;
      const RunResult result = value(session.run("forward", symbols, {&x, &slots}, options));
      if (!plain) plain = result.outputs[0].bytes;
      CHECK(result.outputs[0].bytes == *plain);
      for (const float number : result.outputs[0].elements<float>()) REQUIRE(std::isfinite(number));
    }
  }
  CHECK(accepted > 0);
}

}  // namespace
}  // namespace sinter
