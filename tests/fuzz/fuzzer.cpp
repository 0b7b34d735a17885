// libFuzzer's entry points for one target.
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "fuzz/targets.h"

using namespace sinter::fuzz;

namespace {

const Target& target() {
  static const Target* const found = find_target(SINTER_FUZZ_TARGET);
  return *found;
}

}  // namespace

/// Writes the seeds into the folder that the environment names.
extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* folder = std::getenv("SINTER_FUZZ_SEEDS");
  if (!folder) return 0;
  const std::vector<std::string> seeds = target().seeds();
  for (size_t i = 0; i < seeds.size(); ++i)
    std::ofstream(fmt::format("{}/seed-{}", folder, i), std::ios::binary) << seeds[i];
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Outcome outcome = target().read({reinterpret_cast<const char*>(data), size});
  if (outcome.broken.empty()) return 0;
  std::fprintf(stderr, "%s: %s\n", SINTER_FUZZ_TARGET, outcome.broken.c_str());
  std::abort();
}
