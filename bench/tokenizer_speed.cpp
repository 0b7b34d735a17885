// How fast a tokenizer encodes and decodes a text, on one core.
// Run: tokenizer_speed TOKENIZER TEXT
// TOKENIZER is a tokenizer file or its folder. Prints the best of several rounds.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "frontends/files/bounded_file.h"
#include "frontends/tokenizer/tokenizer.h"

namespace {

constexpr int kRounds = 7;
constexpr uint64_t kMaxBytes = uint64_t{1} << 30;

/// Seconds of the fastest call.
template <typename Call>
double fastest(const Call& call) {
  double best = 1e30;
  for (int round = 0; round < kRounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    call();
    best = std::min(
        best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return best;
}

sinter::Status measure(const char* tokenizer_path, const char* text_path) {
  SINTER_LET(tokenizer, sinter::Tokenizer::open(tokenizer_path));
  SINTER_LET(text, sinter::read_small_file(text_path, kMaxBytes));
  SINTER_LET(ids, tokenizer.encode(text, true));
  SINTER_TRY(tokenizer.decode(ids, false));
  const double encoding = fastest([&] { (void)tokenizer.encode(text, true); });
  const double decoding = fastest([&] { (void)tokenizer.decode(ids, false); });
  const double megabytes = static_cast<double>(text.size()) / 1e6;
  fmt::print("{}: {:.1f} MB, {} tokens; encoding {:.1f} MB/s, decoding {:.1f} MB/s\n",
             tokenizer_path, megabytes, ids.size(), megabytes / encoding, megabytes / decoding);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: tokenizer_speed TOKENIZER TEXT\n");
    return 2;
  }
  const sinter::Status status = measure(argv[1], argv[2]);
  if (!status) fmt::print(stderr, "tokenizer_speed: {}\n", status.error().message());
  return status ? 0 : 4;
}
