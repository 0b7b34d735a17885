#include "driver/ranks.h"

#include <thread>

namespace sinter {

std::string of_rank(std::string_view text, size_t rank) {
  constexpr std::string_view kPlace = "{rank}";
  std::string named(text);
  const std::string number = std::to_string(rank);
  for (size_t at = named.find(kPlace); at != std::string::npos; at = named.find(kPlace, at))
    named.replace(at, kPlace.size(), number);
  return named;
}

Result<OpenedModel> open_rank(const std::string& path, OpenOptions options, size_t rank) {
  if (options.random_weights) *options.random_weights += rank;
  if (options.weights) options.weights = of_rank(*options.weights, rank);
  return open_model(path, options);
}

Status on_ranks(RankGroup& group, llvm::function_ref<Status(size_t rank)> work) {
  std::vector<Status> done(group.size());
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < group.size(); ++rank)
    threads.emplace_back([&, rank] {
      done[rank] = work(rank);
      group.leave(rank, !done[rank]);
    });
  for (std::thread& thread : threads) thread.join();
  if (!group.first_failed()) return {};
  const size_t first = *group.first_failed();
  Error error = std::move(done[first].error());
  error.what = fmt::format("rank {}: {}", first, error.what);
  return tl::make_unexpected(std::move(error));
}

Status check_ranks(size_t ranks, bool on_gpu) {
  if (ranks == 1 || !on_gpu) return {};
  return fail("collectives on several GPUs are not built", fmt::format("--ranks {}", ranks),
              "give --device cpu, or one rank", ExitCode::usage);
}

}  // namespace sinter
