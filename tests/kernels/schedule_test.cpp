// Named devices, and the configurations of row kernels.
#include "kernels/gemv/schedule.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "device/named_devices.h"
#include "kernels/gemv/layout.h"
#include "kernels/row/schedule.h"

namespace sinter::schedule_test {
namespace {

RowProblem rows_of(int64_t lanes, int64_t chunks, int64_t kept_values, SymExpr rows = 100000) {
  return {std::move(rows), {{lanes, chunks, 4 * kept_values}}, 1};
}

RowConfig schedule(const RowProblem& problem) {
  const auto config = schedule_rows(problem, {}, *find_device("sm_90a"));
  REQUIRE(config.has_value());
  return *config;
}

}  // namespace

TEST_CASE("a named device can do what its architecture can, and says how large it is") {
  for (const DeviceDescription& device : named_devices()) {
    CAPTURE(device.name);
    CHECK(device.has == capabilities_of(device.name));
    CHECK(device.multiprocessors > 0);
    CHECK(device.max_shared_bytes >= device.static_shared_bytes);
    CHECK(device.memory_bytes_per_s > 0);
    CHECK(device.cache_bytes_per_s > device.memory_bytes_per_s);
    CHECK(device.cache_bytes > 1e6);
    CHECK(device.tensor_flops_per_s > 0);
    CHECK(device.tensor_peak_flops_per_s >= device.tensor_flops_per_s);
    CHECK(device.launch_s > 0);
  }
}

TEST_CASE("what architectures can do, and the macros that say so") {
  using Macros = std::vector<std::string>;
  const auto macros = [](std::string_view arch) { return kernel_macros(capabilities_of(arch)); };
  const Macros ampere = {"SINTER_HAS_ASYNC_COPY", "SINTER_HAS_MMA", "SINTER_HAS_BF16_ARITHMETIC"};
  CHECK(macros("sm_75").empty());
  CHECK(macros("sm_80") == ampere);
  Macros hopper = ampere;
  hopper.push_back("SINTER_HAS_FP8_CONVERSION");
  CHECK(macros("sm_89") == hopper);
  hopper.insert(hopper.end(), {"SINTER_HAS_CLUSTERS", "SINTER_HAS_PDL"});
  CHECK(macros("sm_120") == hopper);
  hopper.push_back("SINTER_HAS_BULK_COPY");
  for (const char* arch : {"sm_90", "sm_100", "sm_100a", "sm_103a"}) CHECK(macros(arch) == hopper);
  hopper.push_back("SINTER_HAS_WGMMA");
  CHECK(macros("sm_90a") == hopper);
  for (const char* arch : {"", "sm_", "sm_x", "90", "compute_90"}) CHECK(macros(arch).empty());
}

TEST_CASE("devices are found by name; another name is a usage error that lists them") {
  CHECK(find_device("sm_90a")->multiprocessors == 132);
  const auto unknown = find_device("sm_\n1");
  REQUIRE_FALSE(unknown.has_value());
  CHECK(unknown.error().code == ExitCode::usage);
  CHECK(unknown.error().message() ==
        "unknown device description 'sm_\\x0a1'; choose one of sm_80, sm_86, sm_89, sm_90, sm_90a, "
        "sm_100, sm_120");
}

TEST_CASE("a block of at least so many threads holds more rows, each with the threads it has") {
  for (int64_t lanes = 1; lanes <= 1024; lanes *= 2) {
    CAPTURE(lanes);
    RowProblem problem = rows_of(lanes, lanes, 1);
    const RowConfig own = schedule(problem);
    problem.min_threads = 512;
    const RowConfig wide = schedule(problem);
    CHECK(own.threads < 512);
    CHECK(wide.threads == 512);
    CHECK(wide.threads_per_row == own.threads_per_row);
    CHECK(wide.rows_per_block * wide.threads_per_row == 512);
  }
}

TEST_CASE("where rows are many, a thread walks up to four chunks, in blocks of a few warps") {
  for (int64_t lanes = 1; lanes <= 1024; lanes *= 2) {
    CAPTURE(lanes);
    const RowProblem problem = rows_of(lanes, lanes, 1);
    const RowConfig config = schedule(problem);
    CHECK(config.threads_per_row <= lanes);
    CHECK(config.chunks_per_thread(problem.stages[0]) <= 4);
    // With half as many threads a row would have less than a warp, or a thread more than four.
    const bool fewer_would_do =
        config.threads_per_row > 32 && 2 * config.chunks_per_thread(problem.stages[0]) <= 4;
    CHECK_FALSE(fewer_would_do);
    CHECK(config.threads_per_row >= std::min<int64_t>(lanes, 32));
    CHECK(config.threads >= 128);
    CHECK(config.threads <= 256);
    CHECK(config.rows_per_block * config.threads_per_row == config.threads);
    CHECK(config.on_chip);
  }
  CHECK(schedule(rows_of(512, 320, 1)).threads_per_row == 128);    // 80 would do
  CHECK(schedule(rows_of(1024, 2048, 1)).threads_per_row == 256);  // 8 chunks in each
}

TEST_CASE("of many rows that keep much, more threads share the registers, in blocks of a cluster") {
  const auto form_of = [](const RowProblem& problem) {
    const RowConfig config = schedule(problem);
    CHECK(config.blocks * config.threads == config.threads_per_row * config.rows_per_block);
    return std::pair(config.blocks, config.threads_per_row);
  };
  using Form = std::pair<int64_t, int64_t>;
  CHECK(form_of(rows_of(1024, 2048, 1)) == Form(1, 256));   // 64 registers
  CHECK(form_of(rows_of(1024, 2048, 2)) == Form(2, 512));   // 64; with 256 threads 128
  CHECK(form_of(rows_of(1024, 4096, 1)) == Form(2, 512));   // 8 chunks in each
  CHECK(form_of(rows_of(1024, 8192, 1)) == Form(4, 1024));  // the same
  CHECK(form_of(rows_of(1024, 4096, 1, 3)).first == 1);     // few rows

  SUBCASE("with half the threads where nothing of an element is a result") {
    RowProblem problem{100000, {{1024, 8192, 2}}, 1};
    problem.wide_results = 0;
    CHECK(form_of(problem) == Form(4, 512));
    problem.wide_results = 1;
    CHECK(form_of(problem) == Form(4, 1024));
  }
  SUBCASE("in one block where twice the chunks of a thread then keep the row") {
    RowProblem problem{100000, {{1024, 3816, 2}}, 1};
    CHECK(form_of(problem) == Form(1, 256));
    problem.wide_results = 1;
    CHECK(form_of(problem) == Form(2, 512));
  }
  SUBCASE("which prefetch what later blocks read, if they have no more than one result") {
    const auto distance = [](int64_t chunks, int64_t results, const char* device) {
      RowProblem problem = rows_of(1024, chunks, 1);
      problem.wide_results = results;
      return schedule_rows(problem, {}, *find_device(device))->prefetch_distance;
    };
    CHECK(distance(4096, 1, "sm_90a") == 132);
    CHECK(distance(4096, 1, "sm_100") == 148);
    CHECK(distance(4096, 1, "sm_120") == 0);  // has no bulk copies
    CHECK(distance(4096, 0, "sm_90a") == 132);
    CHECK(distance(4096, 2, "sm_90a") == 0);
    CHECK(distance(2048, 1, "sm_90a") == 0);  // one block
  }
  SUBCASE("which a device has to have, and the launch to itself") {
    DeviceDescription device = *find_device("sm_90a");
    device.has.clusters = false;
    CHECK(schedule_rows(rows_of(1024, 4096, 1), {}, device)->blocks == 1);
    RowProblem beside = rows_of(1024, 4096, 1);
    beside.alone = false;
    CHECK(schedule(beside).threads == 512);
    RowProblem wide = rows_of(1024, 4096, 1);
    wide.min_threads = 512;
    CHECK(schedule(wide).threads == 512);
  }
  SUBCASE("and in which each reduction is made by all threads of the row, or in every block") {
    RowProblem problem = rows_of(1024, 8192, 1);
    problem.stages.push_back({512, 512, 4});
    CHECK(schedule(problem).blocks == 1);
    problem.stages[1].lanes = 256;
    CHECK(schedule(problem).blocks == 4);
  }
}

TEST_CASE("few rows make no block of idle threads, but at least a warp") {
  CHECK(schedule(rows_of(16, 16, 1, 3)).threads == 64);
  CHECK(schedule(rows_of(1, 1, 1, 1)).threads == 32);
  CHECK(schedule(rows_of(512, 512, 1, 1)).threads == 512);
}

TEST_CASE("rows stay on chip while registers and unrolled text allow") {
  CHECK(schedule(rows_of(1024, 4096, 1)).on_chip);  // 4 chunks, 32 registers
  CHECK(schedule(rows_of(1024, 4096, 2)).on_chip);  // of a cluster
  CHECK_FALSE(schedule(rows_of(1024, 4096, 2, 1)).on_chip);
  RowProblem longer = rows_of(1024, 16384, 0);
  CHECK(schedule(longer)
            .on_chip);  // 16 chunks in each thread, where nothing of an element is a result
  longer.wide_results = 1;
  CHECK_FALSE(schedule(longer).on_chip);           // 16 unrolled chunks
  CHECK(schedule(rows_of(256, 256, 12)).on_chip);  // 96 registers
  CHECK_FALSE(schedule(rows_of(256, 256, 13)).on_chip);
}

TEST_CASE("rows of unknown length are walked by warps where there are enough of them") {
  RowProblem problem = rows_of(256, 4096, 1);
  problem.stages[0].symbolic = true;
  CHECK(schedule(problem).threads_per_row == 32);
  problem.rows = 8;
  CHECK(schedule(problem).threads_per_row == 256);
}

TEST_CASE("a single row of most threads that would keep too much is walked by half of them") {
  CHECK(schedule(rows_of(1024, 1024, 4, 1)).threads_per_row == 1024);  // 32 registers
  const RowConfig config = schedule(rows_of(1024, 1024, 5, 1));
  CHECK(config.threads_per_row == 512);
  CHECK(config.on_chip);
  CHECK(schedule(rows_of(1024, 16384, 6, 1)).threads_per_row == 1024);  // nor do half of them
}

TEST_CASE("a stage with fewer lanes than the row has threads is walked by that many") {
  RowProblem problem = rows_of(1024, 2048, 1, 1);
  problem.stages.push_back({4, 4, 4});
  problem.stages.push_back({0, 3000});
  const RowConfig config = schedule(problem);
  CHECK(config.owners(1024) == 1024);
  CHECK(config.owners(4) == 4);
  CHECK(config.owners(0) == 1024);
  CHECK(config.chunks_per_thread(problem.stages[0]) == 2);
  CHECK(config.chunks_per_thread(problem.stages[1]) == 1);
  CHECK(config.chunks_per_thread(problem.stages[2]) == 3);
}

TEST_CASE("a device of few threads makes each simulate several lanes, or takes nothing") {
  DeviceDescription device = *find_device("sm_90a");
  device.max_threads_per_block = 100;
  const auto config = schedule_rows(rows_of(1024, 1024, 1), {}, device);
  REQUIRE(config.has_value());
  CHECK(config->threads_per_row == 64);
  CHECK_FALSE(config->on_chip);
  RowProblem problem = rows_of(1024, 1024, 0);
  problem.reductions = 1000;
  CHECK_FALSE(
      schedule_rows(problem, {}, device).has_value());  // 1000 reductions of 16 lanes in 2 warps
  device.max_threads_per_block = 16;
  CHECK_FALSE(schedule_rows(rows_of(1, 1, 1), {}, device).has_value());
}

TEST_CASE("a gemv's shared memory holds sums, operand and stages on every device") {
  for (const char* name : {"sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_120"}) {
    CAPTURE(name);
    const DeviceDescription device = *find_device(name);
    for (int64_t rows : {1, 100, 4096, 22016, 128256})
      for (int64_t splits : {1, 16})
        for (int64_t tokens : {1, 8}) {
          const auto config = schedule_gemv({DType::f16, rows, 4096, splits, tokens}, 1, device);
          REQUIRE(config.has_value());
          CHECK(config->blocks >= std::min(rows, device.multiprocessors));
          CHECK(config->blocks <= rows);
          const int64_t sums = ceil_div(rows, config->blocks) * splits * tokens * 4;
          const bool pipelined = device.has.bulk_copy;
          const int64_t pipelines = pipelined ? 64 * 1024 : 0;
          CHECK(sums + config->operand_bytes + pipelines <= config->shared_bytes);
          CHECK(config->shared_bytes < device.max_shared_bytes);
          CHECK(config->stage_length % 256 == 0);
        }
  }
}

TEST_CASE("the memory that a gemv wants holds a stage of every row that a warp reads together") {
  const DeviceDescription device = *find_device("sm_90a");
  const std::pair<int64_t, const char*> matrices[] = {
      {2, ""}, {4, ""}, {2, "int4 g128 f16"}, {2, "e2m1 g16 f32"}, {4, "int8 row f32"}};
  for (int64_t length : {8, 64, 264, 2560, 4096, 11008, 16384})
    for (const auto& [bytes, codes] : matrices)
      for (int64_t rows : {1, 31, 4096, 128256})
        for (int64_t tokens = 1; tokens <= 8; ++tokens) {
          CAPTURE(length);
          CAPTURE(bytes);
          CAPTURE(codes);
          CAPTURE(rows);
          CAPTURE(tokens);
          GemvProduct product{bytes == 2 ? DType::bf16 : DType::f32, rows, length, 1, tokens};
          if (*codes != 0) product.codes = *parse_code_format(codes);
          const auto config = schedule_gemv(product, 1, device);
          REQUIRE(config.has_value());
          const bool packed = product.codes.has_value(), tiles = tokens > 1 && bytes == 2;
          const int operand_bytes =
              gemv_operand_bytes(static_cast<int>(length), static_cast<int>(bytes), packed,
                                 static_cast<int>(tokens), static_cast<int>(config->operand_bytes));
          const bool fits = tokens * operand_bytes <= config->operand_bytes;
          const GemvLayout layout =
              gemv_layout({.warps = static_cast<int>(config->warps),
                           .rows = static_cast<int>(ceil_div(rows, config->blocks)),
                           .splits = 1,
                           .tokens = static_cast<int>(tokens),
                           .operand_bytes = fits ? operand_bytes : 0,
                           .element_bytes = static_cast<int>(bytes),
                           .step_length = static_cast<int>(product.step_length()),
                           .step_bytes = static_cast<int>(product.step_bytes()),
                           .stage_length = static_cast<int>(config->stage_length),
                           .packed = packed,
                           .tiles = tiles,
                           .pipelined = true,
                           .stages = static_cast<int>(config->stages)});
          const int64_t wanted =
              std::min(config->shared_bytes, config->pipeline_bytes + tokens * config->token_bytes);
          const int stages =
              layout.stages(static_cast<int>(wanted), static_cast<int>(config->warps));
          CHECK(stages >= (packed && tiles ? 0 : 1));  // tiles of codes have none
          CHECK(layout.run_bytes % 16 == 0);
          CHECK(layout.pipelines + stages * config->warps * layout.stage_bytes <= wanted);
          CHECK(layout.stage_bytes % 16 == 0);  // what bulk copies ask of addresses
          CHECK(layout.pipelines % 16 == 0);
        }
}

TEST_CASE("the stages of a gemv divide a split of a row well") {
  const auto stage_length = [](DType dtype, int64_t length, int64_t splits) {
    return schedule_gemv({dtype, 4096, length, splits, 1}, 1, *find_device("sm_90a"))->stage_length;
  };
  CHECK(stage_length(DType::f16, 4096, 1) == 1024);
  CHECK(stage_length(DType::f32, 4096, 1) == 512);
  CHECK(stage_length(DType::f16, 8, 1) == 256);
  CHECK(stage_length(DType::f16, 2560, 1) == 1280);  // two, not two and a half
  CHECK(stage_length(DType::f16, 9216, 4) == 768);   // of a split of 2304, 9 steps: three of three
}

TEST_CASE("units whose sums do not fit have no gemv") {
  const DeviceDescription device = *find_device("sm_90a");
  const GemvProduct several = {DType::f16, 128, 8192, 16, 8}, one = {DType::f16, 128, 8192, 16, 1};
  CHECK(schedule_gemv(several, 64, device).has_value());
  CHECK_FALSE(schedule_gemv(several, 128, device).has_value());
  CHECK(schedule_gemv(one, 128, device).has_value());
}

const GemvProduct kProducts[] = {{DType::f16, 12288, 4096, 1, 8}, {DType::bf16, 4096, 11008, 1, 8},
                                 {DType::f16, 2560, 10240, 8, 8}, {DType::bf16, 128256, 2048, 1, 8},
                                 {DType::f32, 4096, 4096, 16, 1}, {DType::f32, 64, 64, 1, 8}};

TEST_CASE("forms worth measuring: the schedule's own first, all of them fit") {
  const DeviceDescription device = *find_device("sm_90a");
  for (const GemvProduct& product : kProducts) {
    CAPTURE(product.key());
    const std::vector<GemvForm> forms = gemv_form_candidates(product, device);
    REQUIRE(forms.size() > 1);
    const auto usual = schedule_gemv(product, 1, device, nullptr);
    const auto named = schedule_gemv(product, 1, device, &forms[0]);
    REQUIRE(named.has_value());
    CHECK(named->warps == usual->warps);
    CHECK(named->stage_length == usual->stage_length);
    CHECK(named->stages == usual->stages);
    CHECK(named->pipeline_bytes == usual->pipeline_bytes);
    CHECK(named->token_bytes == usual->token_bytes);
    for (size_t i = 0; i < forms.size(); ++i) {
      CAPTURE(i);
      const auto config = schedule_gemv(product, 1, device, &forms[i]);
      REQUIRE(config.has_value());
      CHECK(config->warps >= product.splits);
      CHECK(config->stage_length * whole_bytes(product.dtype) == forms[i].stage_bytes);
      // Never so little that two blocks of a launch stand side by side.
      CHECK(2 * (config->pipeline_bytes + config->token_bytes) > device.max_shared_bytes);
      for (size_t j = 0; j < i; ++j) CHECK_FALSE(forms[i] == forms[j]);
    }
  }
  CHECK(gemv_form_candidates(kProducts[0], *find_device("sm_80")).empty());
}

TEST_CASE("a form that the row, the warps, the memory or the device have no room for is none") {
  const DeviceDescription device = *find_device("sm_90a");
  const auto fits = [&](const GemvProduct& product, GemvForm form, const char* arch = "sm_90a") {
    return schedule_gemv(product, 1, *find_device(arch), &form).has_value();
  };
  const GemvProduct whole{DType::bf16, 4096, 4096, 1, 8}, parts{DType::bf16, 4096, 4096, 16, 8};
  CHECK(fits(whole, {16, 2048, 6}));
  CHECK(fits(whole, {8, 8192, 2}));
  CHECK_FALSE(fits(whole, {16, 2048, 7}));  // 224 KiB
  CHECK_FALSE(fits(whole, {16, 2048, 9}));
  CHECK_FALSE(fits(whole, {16, 2048, 1}));
  CHECK_FALSE(fits(whole, {4, 2048, 4}));
  CHECK_FALSE(fits(whole, {32, 2048, 4}));
  CHECK_FALSE(fits(whole, {16, 1000, 4}));  // no whole steps of a warp
  CHECK_FALSE(fits(whole, {8, 8704, 2}));   // longer than a row
  CHECK(fits(parts, {16, 512, 4}));
  CHECK_FALSE(fits(parts, {16, 1024, 4}));                           // longer than a part
  CHECK_FALSE(fits(parts, {8, 512, 4}));                             // fewer warps than parts
  CHECK_FALSE(fits({DType::f32, 4096, 4096, 1, 8}, {16, 2560, 4}));  // half a step of f32
  CHECK_FALSE(fits(whole, {16, 2048, 4}, "sm_80"));
}

}  // namespace sinter::schedule_test
