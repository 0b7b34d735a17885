// Row numbers that a module computes and that name no row: one line, exit code 4.
#include <doctest/doctest.h>

#include <cstring>

#include "cli/program.h"
#include "runtime/temporary_directory.h"

namespace sinter::row_numbers_test {
namespace {

/// Gathers the rows that three constants name, `last` the last of them, in a table of 5 rows.
std::string gathering(int last) {
  return R"(module @m {
  weight %table : f32[5, 8] = constant {value = 1.0}
  entry @f(%x: f32[3, 8]) -> (%y) {
    %i = iota {axis = 0} : i32[3]
    %more = constant {value = )" +
         std::to_string(last - 2) + R"(.0} : i32[]
    %rows = add %i, %more : i32[3]
    %e = embedding %table, %rows : f32[3, 8]
    %y = add %e, %x : f32[3, 8]
  }
}
)";
}

/// A safetensors file with %x.
std::string inputs() {
  const std::string header = R"({"x":{"dtype":"F32","shape":[3,8],"data_offsets":[0,96]}})";
  const uint64_t length = header.size();
  std::string file(sizeof(length), '\0');
  std::memcpy(file.data(), &length, sizeof(length));
  return file + header + std::string(96, '\0');
}

constexpr const char* kHint = "; the module computes it: check the module and the inputs\n";

TEST_CASE("run and verify exit 4 where a module names a row that is not there") {
  const TemporaryDirectory folder;
  const std::string module = folder.path() + "/m.sir", in = folder.path() + "/in.safetensors";
  write_whole(in, inputs());
  const std::vector<std::string> commands[] = {
      {"run", module, "--inputs", in, "--device", "cpu"},
      {"run", module, "--inputs", in, "--device", "cpu", "--no-fuse"},
      {"verify", module, "--device", "cpu"}};
  for (const std::vector<std::string>& command : commands) {
    CAPTURE(command[0]);
    write_whole(module, gathering(4));
    const ProgramRun good = run_program(command);
    CAPTURE(good.err);
    CHECK(good.code == 0);
    write_whole(module, gathering(5));
    const ProgramRun bad = run_program(command);
    CHECK(bad.code == 4);
    CAPTURE(bad.err);
    CHECK(bad.err.ends_with(std::string("entry f, %e: %rows[2] is 5, outside the 0 .. 4 that it "
                                        "points into") +
                            kHint));
  }
}

}  // namespace
}  // namespace sinter::row_numbers_test
