// The split of a column reduction's lanes over threads, blocks and clusters.
#include <doctest/doctest.h>

#include "kernels/column/schedule.h"

namespace sinter::schedule_columns_test {
namespace {

ColumnConfig split(const ColumnProblem& problem, const DeviceDescription& device) {
  const auto config = schedule_columns(problem, {}, device);
  REQUIRE(config.has_value());
  return *config;
}

}  // namespace

TEST_CASE("the blocks of a cluster share a tile where tiles are few") {
  const DeviceDescription& device = *find_device("sm_90a");
  const auto few = split({.outer = 1, .width = 4096, .lanes = 1024}, device);
  CHECK(few.chunks == 8);
  CHECK(few.runs == 32);
  CHECK(few.lanes == 8);
  CHECK(few.segments == 4);
  CHECK(split({.outer = 1, .width = 262144, .lanes = 1024}, device).segments == 1);
  CHECK(split({.outer = 64, .width = 4096, .lanes = 1024}, device).segments == 1);
}

TEST_CASE("a grid of one narrow sum has the most threads that run at once") {
  const DeviceDescription device = *find_device("sm_90a");
  for (const int64_t bytes : {2, 4})
    for (const int64_t width : {1024, 4096, 8192, 16384})
      for (const int64_t reductions : {1, 2}) {
        const ColumnProblem problem{.outer = 1,
                                    .width = width,
                                    .lanes = 1024,
                                    .element_bytes = bytes,
                                    .operand_bytes = bytes,
                                    .reductions = reductions};
        const auto config = split(problem, device);
        const double threads = column_tiles(problem, config, {}) *
                               static_cast<double>(config.segments * config.threads());
        const double resident = 768.0 * device.multiprocessors;
        CHECK(config.resident_threads == (reductions == 1 ? 768 : 512));
        if (reductions == 1) CHECK((threads <= resident || config.segments == 1));
        // Clusters find 10 of 11 places.
        CHECK(2 * threads > resident * 10 / 11);
      }
}

TEST_CASE("all clusters of one narrow sum have a place at once") {
  const DeviceDescription device = *find_device("sm_90a");
  for (const int64_t width : {768, 1536, 2304, 3072, 4096, 5120}) {
    const ColumnProblem problem{.outer = 1, .width = width, .lanes = 1024};
    const auto config = split(problem, device);
    const double blocks = column_tiles(problem, config, {}) * static_cast<double>(config.segments);
    const int64_t of_multiprocessor = config.resident_threads / config.threads();
    if (config.segments > 2)
      CHECK(11 * blocks <= 10.0 * static_cast<double>(of_multiprocessor * device.multiprocessors));
  }
}

TEST_CASE("blocks that store every element have a multiprocessor each, and longer rows") {
  const DeviceDescription device = *find_device("sm_90a");
  for (const int64_t width : {768, 3072, 4096, 8192}) {
    const ColumnProblem problem{
        .outer = 1, .width = width, .lanes = 1024, .operand_bytes = 4, .stores_elements = true};
    const auto config = split(problem, device);
    const double blocks = column_tiles(problem, config, {}) * static_cast<double>(config.segments);
    CHECK(config.threads() == 512);
    // Narrower tiles where they give a block to more multiprocessors.
    CHECK(config.chunks == (width == 768 || width == 4096 ? 8 : 16));
    CHECK(config.resident_threads == 512);
    CHECK(blocks <= device.multiprocessors);
  }
}

TEST_CASE("few rows that are stored have small blocks where those fill the device better") {
  const DeviceDescription& device = *find_device("sm_90a");
  const auto of = [&](int64_t lanes, int64_t width, int64_t operand_bytes = 4) {
    return split({.outer = 1,
                  .width = width,
                  .lanes = lanes,
                  .operand_bytes = operand_bytes,
                  .stores_elements = true},
                 device);
  };
  const auto few = of(256, 4608);  // [2048, 4608]
  CHECK(few.resident_threads == 768);
  CHECK(few.chunks == 8);
  CHECK(few.segments == 8);
  CHECK(few.threads() == 128);
  CHECK(few.lanes == 2);
  CHECK(of(128, 4608).lanes == 1);
  CHECK(of(512, 2304).threads() == 256);
  // The usual blocks fill as large a part, small ones would not run at once, threads have more
  // lanes, or loads need more registers.
  CHECK(of(256, 3072).threads() == 512);
  CHECK(of(256, 6144).threads() == 512);
  CHECK(of(512, 3072).threads() == 512);
  CHECK(of(1024, 4608).threads() == 512);
  CHECK(of(256, 4608, 6).threads() == 512);
}

TEST_CASE("few rows have more blocks of fewer columns, unless blocks are many") {
  const DeviceDescription& device = *find_device("sm_90a");
  const auto few = split({.outer = 1, .width = 768, .lanes = 512}, device);
  CHECK(few.lanes == 1);
  CHECK(few.chunks == 4);
  CHECK(few.threads() == 256);
  CHECK(split({.outer = 8, .width = 1152, .lanes = 32}, device).chunks == 4);
  CHECK(split({.outer = 64, .width = 1152, .lanes = 32}, device).chunks == 8);
  CHECK(split({.outer = 1, .width = 768, .lanes = 1024}, device).chunks == 8);
  const ColumnProblem many{.outer = 1,
                           .width = 768,
                           .lanes = 1024,
                           .element_bytes = 4,
                           .operand_bytes = 6,
                           .reductions = 2};
  CHECK(split(many, device).lanes == 1);
  CHECK(split(many, device).chunks == 4);
}

TEST_CASE("a device without clusters has wider blocks, and then narrower tiles") {
  const DeviceDescription& device = *find_device("sm_80");
  const auto wide = split({.outer = 1, .width = 8192, .lanes = 1024}, device);
  CHECK(wide.segments == 1);
  CHECK(wide.threads() == 512);
  CHECK(split({.outer = 1, .width = 1024, .lanes = 1024}, device).chunks == 2);
}

TEST_CASE("every split has all lanes, in blocks that the device has") {
  for (const char* name : {"sm_80", "sm_90a"})
    for (const int64_t threads : {32, 64, 1024})
      for (const int64_t lanes : {1, 2, 16, 256, 1024})
        for (const int64_t width : {1, 8, 100, 4096, 100000})
          for (const int64_t bytes : {2, 4})
            for (const int64_t reductions : {1, 2}) {
              DeviceDescription device = *find_device(name);
              device.max_threads_per_block = threads;
              const auto config = split({.outer = 3,
                                         .width = width,
                                         .lanes = lanes,
                                         .element_bytes = bytes,
                                         .reductions = reductions},
                                        device);
              CHECK(config.runs * config.lanes * config.segments == lanes);
              CHECK(config.threads() % 32 == 0);
              CHECK(config.threads() <= threads);
              CHECK(config.segments <= (device.has.clusters ? 8 : 1));
              CHECK(config.handed() <= config.tile() * 32);  // a warp combines what is left
            }
}

TEST_CASE("what does not fit shared memory has no configuration") {
  DeviceDescription device = *find_device("sm_90a");
  const ColumnProblem problem{.outer = 1, .width = 4096, .lanes = 1024, .reductions = 100};
  CHECK_FALSE(schedule_columns(problem, {}, device).has_value());
  device.max_threads_per_block = 16;
  CHECK_FALSE(schedule_columns({.outer = 1, .width = 8}, {}, device).has_value());
}

}  // namespace sinter::schedule_columns_test
