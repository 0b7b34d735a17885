// Slots of the arena: buffers that live at the same time share none, and the arena is little larger
// than what lives at a time.
#include "codegen/lowering/arena.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "driver/build.h"
#include "frontends/model/build_model.h"

namespace sinter::arena_test {
namespace {

/// Symbols N in [1, 4096] and M in [1, 64].
const std::vector<Symbol> kSymbols = {{.name = "N", .low = 1, .high = 4096},
                                      {.name = "M", .low = 1, .high = 64}};
const SymExpr n = Dim(SymbolId{0}), m = Dim(SymbolId{1});

Buffer live(SymExpr bytes, uint32_t first, uint32_t last) {
  Buffer buffer;
  buffer.size_bytes = std::move(bytes);
  buffer.first_step = first;
  buffer.last_step = last;
  return buffer;
}

bool meet(const Buffer& a, const Buffer& b) {
  return a.first_step <= b.last_step && b.first_step <= a.last_step;
}

/// The bytes of the memory in which a buffer lies: the arena, or an output of its own memory.
int64_t memory_bytes(const EntryPlan& entry, const ArenaLayout& layout, size_t buffer,
                     llvm::ArrayRef<int64_t> values) {
  const int64_t output = layout.outputs[buffer];
  if (output == ArenaLayout::kInArena) return layout.bytes;
  const uint32_t host = entry.outputs[static_cast<size_t>(output)];
  CHECK(layout.offsets[host] == 0);
  return *entry.buffers[host].size_bytes.evaluate(values);
}

/// Checks that no two live buffers share a byte, and returns the arena's size.
int64_t checked_bytes(const EntryPlan& entry, llvm::ArrayRef<int64_t> values, bool apart = false) {
  const auto layout = arena_layout(entry, values, apart);
  REQUIRE(layout);
  for (size_t i = 0; i < entry.buffers.size(); ++i) {
    const Buffer& a = entry.buffers[i];
    const int64_t begin = layout->offsets[i], end = begin + *a.size_bytes.evaluate(values);
    CHECK(begin % kArenaAlignment == 0);
    CHECK(end <= memory_bytes(entry, *layout, i, values));
    for (uint32_t step = a.first_step; step <= a.last_step && step < entry.steps.size(); ++step)
      CHECK((layout->outputs[i] != ArenaLayout::kInArena || end <= layout->used[step]));
    for (size_t j = 0; j < i; ++j) {
      const Buffer& b = entry.buffers[j];
      if (!meet(a, b) || layout->outputs[i] != layout->outputs[j]) continue;
      const int64_t from = layout->offsets[j], to = from + *b.size_bytes.evaluate(values);
      CHECK((end <= from || to <= begin || begin == end || from == to));
    }
  }
  return layout->bytes;
}

TEST_CASE("buffers of random lives and sizes share no byte at any size") {
  std::mt19937 random(20251123);
  const auto up_to = [&](uint32_t most) { return static_cast<uint32_t>(random() % (most + 1)); };
  for (int round = 0; round < 200; ++round) {
    EntryPlan entry;
    for (uint32_t count = 1 + up_to(40); count > 0; --count) {
      const uint32_t first = up_to(30);
      const SymExpr sizes[] = {SymExpr(int64_t{up_to(5000)}), SymExpr(int64_t{2 * up_to(300)}) * n,
                               SymExpr(int64_t{up_to(300)}) * m,
                               SymExpr(int64_t{up_to(64)}) * n * n,
                               SymExpr(int64_t{up_to(64)}) * n * m + SymExpr(1)};
      entry.buffers.push_back(live(sizes[up_to(4)], first, first + up_to(6)));
    }
    entry.steps.resize(37);
    for (uint32_t count = up_to(3); count > 0; --count) {
      entry.outputs.push_back(up_to(static_cast<uint32_t>(entry.buffers.size()) - 1));
      entry.buffers[entry.outputs.back()].last_step = 37;
    }
    plan_arena(entry.buffers, kSymbols);
    for (const std::vector<int64_t>& values :
         {std::vector<int64_t>{1, 1}, {1, 64}, {17, 3}, {4096, 1}, {4096, 64}}) {
      const int64_t bytes = checked_bytes(entry, values);
      CHECK(checked_bytes(entry, values, true) <= bytes);
    }
  }
}

TEST_CASE("a step's result in the place of an operand has its offset") {
  EntryPlan entry;
  entry.steps.resize(4);
  entry.buffers = {live(SymExpr(64) * n, 0, 1), live(SymExpr(64) * n, 1, 2),
                   live(SymExpr(64) * n, 2, 4), live(SymExpr(64) * n, 1, 3)};
  entry.outputs = {2};
  plan_arena(entry.buffers, kSymbols, {{0, 1}, {1, 2}});
  for (uint32_t i : {1u, 2u}) CHECK(entry.buffers[i].slot == entry.buffers[0].slot);
  CHECK(entry.buffers[3].slot != entry.buffers[0].slot);
  const auto layout = arena_layout(entry, {100, 1});
  REQUIRE(layout);
  for (uint32_t i : {1u, 2u}) CHECK(layout->offsets[i] == layout->offsets[0]);
  CHECK(layout->bytes == 2 * 6400);
  CHECK(buffers_written_over(entry) == std::vector<bool>{true, true, false, false});
  SUBCASE("and lies in the output's memory where that is apart") {
    const auto apart = arena_layout(entry, {100, 1}, true);
    REQUIRE(apart);
    CHECK(apart->outputs == std::vector<int64_t>{0, 0, 0, ArenaLayout::kInArena});
    CHECK(apart->bytes == 6400);
  }
}

TEST_CASE("values that are read before an output is written lie in its memory") {
  EntryPlan entry;
  entry.steps.resize(3);
  entry.buffers = {live(512, 0, 1), live(256, 0, 1), live(256, 1, 2), live(900, 2, 3)};
  entry.outputs = {3};
  plan_arena(entry.buffers, kSymbols);
  CHECK(checked_bytes(entry, {1, 1}) == 1024 + 256);
  const auto apart = arena_layout(entry, {1, 1}, true);
  REQUIRE(apart);
  CHECK(apart->outputs == std::vector<int64_t>{0, 0, ArenaLayout::kInArena, 0});
  CHECK(apart->bytes == 256);
  CHECK(apart->used == std::vector<int64_t>{0, 256, 256});
}

TEST_CASE("small values lie beside one another in the place of a large one") {
  EntryPlan entry;
  entry.steps.resize(4);
  entry.buffers = {live(4096, 0, 1), live(1024, 2, 3), live(1024, 2, 3), live(2048, 2, 3)};
  plan_arena(entry.buffers, kSymbols);
  CHECK(checked_bytes(entry, {1, 1}) == 4096);
}

TEST_CASE("sizes of which neither covers the other share a slot") {
  EntryPlan entry;
  entry.buffers = {live(SymExpr(64) * n * n, 0, 1), live(SymExpr(16384) * n, 2, 3),
                   live(SymExpr(4) * n, 1, 2)};
  plan_arena(entry.buffers, kSymbols);
  CHECK(entry.buffers[0].slot == entry.buffers[1].slot);
  CHECK(entry.buffers[2].slot != entry.buffers[0].slot);
  CHECK(checked_bytes(entry, {1, 1}) == 16384 + 256);
  CHECK(checked_bytes(entry, {100, 1}) == 1638400 + 512);
  CHECK(checked_bytes(entry, {1000, 1}) == 64000000 + 4096);
}

TEST_CASE("an arena beyond 63 bits has no layout") {
  EntryPlan entry;
  entry.buffers = {live(SymExpr(INT64_MAX / 4096) * n, 0, 1), live(SymExpr(4096), 0, 1)};
  plan_arena(entry.buffers, kSymbols);
  CHECK(arena_layout(entry, {1, 1}));
  CHECK_FALSE(arena_layout(entry, {4096, 1}));
  entry.buffers[1].slot = 2;
  CHECK_FALSE(arena_layout(entry, {1, 1}));
}

/// The most bytes that live at a time, each buffer rounded up as its slot is.
int64_t most_live_bytes(const EntryPlan& entry, llvm::ArrayRef<int64_t> values) {
  std::vector<int64_t> live(entry.steps.size() + 1, 0);
  for (const Buffer& buffer : entry.buffers) {
    if (buffer.place != Buffer::Place::arena) continue;
    const auto bytes = aligned_bytes(static_cast<size_t>(*buffer.size_bytes.evaluate(values)));
    for (uint32_t step = buffer.first_step; step <= buffer.last_step; ++step)
      live[step] += static_cast<int64_t>(bytes);
  }
  return *std::max_element(live.begin(), live.end());
}

TEST_CASE("the arenas of real models are little larger than what lives at a time") {
  for (const std::string name : {"llama-2-7b", "llama-3.2-1b", "pythia-2.8b"}) {
    const auto built = build({fmt::format(SINTER_SAMPLES_DIR "/{}.json", name), {}, {}});
    REQUIRE(built);
    const Program& program = *built->compiled.program;
    for (const EntryPlan& entry : program.entries)
      for (const int64_t size : {1, 5, 100, 128, 1000, 4096, 16384}) {
        std::vector<int64_t> values;
        for (const Symbol& symbol : program.symbols) {
          // With more tokens than one text has, only the last token of each text is wanted.
          const bool of_texts = symbol.name == "M" && size > symbol.high;
          const int64_t wanted = of_texts ? kUsualSequences : size;
          values.push_back(
              std::clamp(wanted / symbol.multiple * symbol.multiple, symbol.low, symbol.high));
        }
        const auto layout = arena_layout(entry, values);
        REQUIRE(layout);
        const int64_t live = most_live_bytes(entry, values);
        CAPTURE(name);
        CAPTURE(entry.name);
        CAPTURE(size);
        CHECK(layout->bytes <= live + live / 2);
      }
  }
}

}  // namespace
}  // namespace sinter::arena_test
