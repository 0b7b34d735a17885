// Files cut short and with a bit flipped. A broken file is refused with one line of kind bad input,
// or gives what the whole file gives, or, where the flip makes another valid document of it (a
// digit of a number, a letter of a name), gives that; nothing crashes, takes long, or takes memory
// beyond the file's size. A cut file never gives anything but what the whole one gives.
//
// SINTER_BROKEN_FILES=N tries N variants of every file, "all" every cut and every flip; without it
// a sample, the same in every run. Bits are flipped in headers: after them a flip makes other
// weights.
#include <doctest/doctest.h>
#include <time.h>

#include <cstdlib>
#include <filesystem>
#include <set>

#include "fuzz/reading.h"
#include "support/allocations.h"

namespace sinter::fuzz::broken_files_test {
namespace {

using test::allocations_are_counted, test::peak_bytes, test::reset_peak;

constexpr size_t kSampled = 4000;          // variants of a file in a plain run
constexpr double kMaxSeconds = 1;          // of processor time, for one file
constexpr size_t kMaxBytes = 64ull << 20;  // of memory beyond the file's size

struct Counts {
  size_t identical = 0, refused = 0, other = 0;
};

double cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

size_t wanted_variants() {
  const char* wanted = std::getenv("SINTER_BROKEN_FILES");
  if (!wanted) return kSampled;
  return std::string_view(wanted) == "all" ? SIZE_MAX : std::strtoull(wanted, nullptr, 10);
}

/// Reads and checks what holds for any bytes.
Outcome read_within_bounds(const Target& target, std::string_view bytes) {
  reset_peak();
  const double begin = cpu_seconds();
  Outcome outcome = target.read(bytes);
  const double seconds = cpu_seconds() - begin;
  const size_t held = peak_bytes();
  if (!outcome.broken.empty()) FAIL_CHECK(outcome.broken);
  if (!outcome.read && outcome.read.error().code != ExitCode::bad_input)
    FAIL_CHECK("not bad input");
  if (seconds > kMaxSeconds && allocations_are_counted()) FAIL_CHECK("took ", seconds, " s");
  if (held > bytes.size() + kMaxBytes) FAIL_CHECK("held ", held, " bytes");
  return outcome;
}

void count(const Outcome& outcome, const std::string& whole, Counts& counts) {
  if (!outcome.read)
    ++counts.refused;
  else if (*outcome.read == whole)
    ++counts.identical;
  else
    ++counts.other;
}

/// `wanted` numbers below `total`, spread and in no order that matters; all if there are no more.
std::vector<size_t> spread(size_t total, size_t wanted) {
  std::vector<size_t> numbers;
  if (wanted >= total) {
    for (size_t i = 0; i < total; ++i) numbers.push_back(i);
    return numbers;
  }
  uint64_t state = 1;
  std::set<size_t> taken;
  while (taken.size() < wanted) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    taken.insert(static_cast<size_t>((state >> 20) % total));
  }
  return {taken.begin(), taken.end()};
}

/// Half of the variants are cuts, half are flips.
void break_file(const Target& target, const std::string& whole_file, Counts& cuts, Counts& flips) {
  const Outcome whole = read_within_bounds(target, whole_file);
  REQUIRE_MESSAGE(whole.read.has_value(), (whole.read ? "" : whole.read.error().message()));
  const size_t half = std::max<size_t>(1, wanted_variants() / 2);
  for (size_t size : spread(whole_file.size(), half)) {
    CAPTURE(size);
    const std::string_view cut = std::string_view(whole_file).substr(0, size);
    count(read_within_bounds(target, cut), *whole.read, cuts);
  }
  std::string flipped = whole_file;
  for (size_t bit : spread(8 * target.header_bytes(whole_file), half)) {
    CAPTURE(bit);
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    count(read_within_bounds(target, flipped), *whole.read, flips);
    flipped[bit / 8] = whole_file[bit / 8];
  }
}

void report(const std::string& what, const Counts& counts) {
  MESSAGE(what, ": ", counts.refused, " refused, ", counts.identical, " identical, ", counts.other,
          " another valid document");
}

void break_files(const char* name) {
  const Target* target = find_target(name);
  REQUIRE(target);
  Counts cuts, flips;
  const std::vector<std::string> seeds = target->seeds();
  for (size_t seed = 0; seed < seeds.size(); ++seed) {
    CAPTURE(seed);
    break_file(*target, seeds[seed], cuts, flips);
  }
  report(fmt::format("{}, cut", name), cuts);
  report(fmt::format("{}, bit flipped", name), flips);
  CHECK(flips.refused > 0);
  // tokenizer.bin has no count of its pieces: it can end after any of them.
  if (std::string_view(name) != "tokenizer_bin") CHECK(cuts.other == 0);
}

}  // namespace

TEST_CASE("broken safetensors") { break_files("safetensors"); }
TEST_CASE("broken .npy") { break_files("npy"); }
TEST_CASE("broken .npz") { break_files("npz"); }
TEST_CASE("broken GGUF") { break_files("gguf"); }
TEST_CASE("broken shard index") { break_files("shard_index"); }
TEST_CASE("broken quantized weights") { break_files("quantized"); }
TEST_CASE("broken config.json") { break_files("config"); }
TEST_CASE("broken spec") { break_files("spec"); }
TEST_CASE("broken tokenizer.json") { break_files("tokenizer_json"); }
TEST_CASE("broken tokenizer.model") { break_files("tokenizer_model"); }
TEST_CASE("broken tokenizer.bin") { break_files("tokenizer_bin"); }
TEST_CASE("broken tokenizer_config.json") { break_files("tokenizer_config"); }
TEST_CASE("broken llama2.c checkpoint") { break_files("llama2c"); }
TEST_CASE("broken text IR") { break_files("sir"); }
TEST_CASE("broken plan.json") { break_files("plan"); }
TEST_CASE("broken manifest.json") { break_files("manifest"); }

TEST_CASE("every kind of file is broken here and by a fuzzer") {
  std::set<std::string> names;
  for (const Target& target : targets()) {
    CHECK(names.insert(target.name).second);
    CHECK(!target.seeds().empty());
  }
  CHECK(names.size() == 16);
}

/// Inputs on which a fuzzer or a person once found something wrong; a folder for each target.
TEST_CASE("regression corpus") {
  size_t tried = 0;
  for (const Target& target : targets()) {
    const std::filesystem::path folder =
        std::filesystem::path(SINTER_TESTS_DIR "/fuzz/corpus") / target.name;
    if (!std::filesystem::exists(folder)) continue;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      CAPTURE(entry.path().string());
      read_within_bounds(target, bytes_of(entry.path().string()));
      ++tried;
    }
  }
  CHECK(tried > 0);
}

}  // namespace sinter::fuzz::broken_files_test
