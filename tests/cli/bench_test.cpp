// `sinter bench` where there is no GPU, and what it refuses before it looks for one.
#include <doctest/doctest.h>

#include <algorithm>

#include "cli/golden.h"
#include "cli/program.h"

namespace sinter::bench_test {
namespace {

ProgramRun bench_without_gpu(std::vector<std::string> more) {
  more.insert(more.begin(), {"bench", kGpt2});
  ProgramRun run = run_program(more, {"CUDA_VISIBLE_DEVICES="});
  CAPTURE(run.err);
  CHECK(run.out == "");
  CHECK(run.err.starts_with("sinter: "));
  CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
  return run;
}

TEST_CASE("a benchmark without a GPU is one line and exits 5") {
  CHECK(bench_without_gpu({}).code == 5);
  CHECK(bench_without_gpu({"--device", "cuda"}).code == 5);
  CHECK(bench_without_gpu({"--device", "cpu"}).code == 5);
  CHECK(bench_without_gpu({"--device", "cpu"}).err.find("needs a GPU") != std::string::npos);
}

TEST_CASE("a benchmark refuses what it cannot measure") {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"--no-fuse"},
                                             {"--symbol", "N"},
                                             {"--symbol", "N=many"},
                                             {"--repeat", "0"},
                                             {"-p", "-1"}}) {
    CAPTURE(arguments[0]);
    CHECK(bench_without_gpu(arguments).code == 2);
  }
}

}  // namespace
}  // namespace sinter::bench_test
