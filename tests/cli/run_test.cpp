// `sinter run` of a module: its entries on given or random inputs, and what results are called.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "cli/program.h"
#include "cli/tensors.h"
#include "runtime/temporary_directory.h"

namespace sinter::run_test {
namespace {

using Floats = std::vector<float>;

/// A folder with files, and the program run in it.
class Place {
 public:
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  void write(const std::string& name, const std::string& text) const {
    write_whole(path(name), text);
  }
  void write(const std::string& name, const std::vector<TestTensor>& tensors) const {
    write_whole(path(name), tensors_file(tensors));
  }
  /// `sinter run NAME OPTIONS`; PLACE in an option stands for the folder.
  ProgramRun run(const std::string& name, std::vector<std::string> options) const {
    for (std::string& option : options)
      if (const size_t at = option.find("PLACE"); at != std::string::npos)
        option.replace(at, 5, folder_.path());
    options.insert(options.begin(), {"run", path(name), "--device", "cpu"});
    return run_program(options);
  }
  /// The file that `run` writes with --out.
  std::string results(const std::string& name, std::vector<std::string> options) const {
    options.insert(options.end(), {"--out", path("out.safetensors")});
    const ProgramRun done = run(name, std::move(options));
    REQUIRE_MESSAGE(done.code == 0, done.err);
    return read_whole(path("out.safetensors"));
  }
  void refused(const std::string& name, const std::vector<std::string>& options, int code,
               const std::string& part) const {
    const ProgramRun done = run(name, options);
    CAPTURE(done.err);
    CHECK(done.code == code);
    CHECK(done.out == "");
    CHECK(std::count(done.err.begin(), done.err.end(), '\n') == 1);
    CHECK(done.err.find(part) != std::string::npos);
  }

 private:
  TemporaryDirectory folder_;
};

TEST_CASE("results have the names that the module gives its outputs") {
  const Place place;
  // %a and %b become one value, %b is an output twice, %x needs a copy, %v is a view.
  place.write("m.sir", R"(module @m {
  symbol N in [1, 8]
  entry @f(%x: f32[N, 4]) -> (%b, %a, %b, %x, %v) {
    %a = neg %x : f32[N, 4]
    %b = neg %x : f32[N, 4]
    %v = transpose %a {axes = [1, 0]} : f32[4, N]
  }
}
)");
  place.write("in", {f32_tensor("x", {1, 4}, {1, 2, 3, 4})});
  for (const char* fuse : {"--quiet", "--no-fuse"}) {
    const std::string out = place.results("m.sir", {"--inputs", "PLACE/in", fuse});
    CHECK(floats_of(out, "a")[2] == -3);
    CHECK(floats_of(out, "b")[2] == -3);
    CHECK(floats_of(out, "x")[2] == 3);
    CHECK(floats_of(out, "v")[2] == -3);
  }
}

// @put stores a row, @sum adds a value to all rows. R is told by no input.
constexpr const char* kRowsModule = R"(module @rows {
  symbol N in [1, 8]
  symbol R in [2, 16] step 2
  weight %one : f32[2] = file {tensor = "one"}
  state %rows : f32[R, 2]
  entry @put(%x: f32[N, 2], %slot: i32[N]) -> (%rows.next) {
    %y = add %x, %one : f32[N, 2]
    %rows.next = kv_append %rows, %y, %slot : f32[R, 2]
  }
  entry @sum(%x: f32[R, 2]) -> (%y) {
    %y = add %rows, %x : f32[R, 2]
  }
}
)";

struct Rows : Place {
  Rows() {
    write("m.sir", kRowsModule);
    write("w", {f32_tensor("one", {2}, {1, 2})});
    write("put", {f32_tensor("x", {1, 2}, {10, 20}), i32_tensor("slot", {1}, {1})});
    write("both", {f32_tensor("put.x", {1, 2}, {10, 20}), i32_tensor("slot", {1}, {1}),
                   f32_tensor("sum.x", {2, 2}, {100, 200, 300, 400})});
  }
};

TEST_CASE("entries run in one session, their tensors named ENTRY.NAME or NAME") {
  const Rows place;
  const std::string all =
      place.results("m.sir", {"--weights", "PLACE/w", "--inputs", "PLACE/both"});
  CHECK(tensor_names(all) == std::vector<std::string>{"put.rows.next", "sum.y"});
  CHECK(floats_of(all, "put.rows.next") == Floats{0, 0, 11, 22});
  CHECK(floats_of(all, "sum.y") == Floats{100, 200, 311, 422});
  // In another order the state is still zero.
  const std::string turned = place.results(
      "m.sir", {"--weights", "PLACE/w", "--inputs", "PLACE/both", "--phase", "sum,put"});
  CHECK(floats_of(turned, "sum.y") == Floats{100, 200, 300, 400});
  // The last call of each counts.
  for (const auto& again : {std::vector<std::string>{"--phase", "sum,put,sum"},
                            {"--phase", "sum,put", "--calls", "2"}}) {
    std::vector<std::string> options = {"--weights", "PLACE/w", "--inputs", "PLACE/both"};
    options.insert(options.end(), again.begin(), again.end());
    CHECK(floats_of(place.results("m.sir", options), "sum.y") == Floats{100, 200, 311, 422});
  }
  // One entry alone: its values have no prefix, and its tensors need none.
  const std::string one = place.results("m.sir", {"--weights", "PLACE/w", "--inputs", "PLACE/put",
                                                  "--phase", "put", "--symbol", "R=4"});
  CHECK(tensor_names(one) == std::vector<std::string>{"rows.next"});
  CHECK(floats_of(one, "rows.next") == Floats{0, 0, 11, 22, 0, 0, 0, 0});
}

TEST_CASE("a stored state is read by the next call") {
  Place place;
  place.write("m.sir", R"(module @m {
  state %m : f32[2]
  entry @step(%g: f32[2]) -> (%sum) {
    %sum = add %m, %g : f32[2]
    %next = store %m, %sum : f32[2]
  }
}
)");
  place.write("in", {f32_tensor("g", {2}, {1, 20})});
  for (const char* fuse : {"--quiet", "--no-fuse"})
    for (const auto& [calls, sum] : {std::pair("1", Floats{1, 20}), {"3", {3, 60}}})
      CHECK(floats_of(place.results("m.sir", {"--inputs", "PLACE/in", "--calls", calls, fuse}),
                      "sum") == sum);
}

/// The elements at the end of a .npy.
Floats last_floats(const std::string& file, size_t count) {
  Floats values(count);
  REQUIRE(file.size() >= count * sizeof(float));
  std::memcpy(values.data(), file.data() + file.size() - count * sizeof(float),
              count * sizeof(float));
  return values;
}

TEST_CASE("what a run writes as .npz is read by the next one, and one value as .npy") {
  const Rows place;
  const auto run = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"--weights", "PLACE/w"});
    const ProgramRun done = place.run("m.sir", options);
    REQUIRE_MESSAGE(done.code == 0, done.err);
    return done;
  };
  // This module gives its inputs back, and so makes an archive of a safetensors file.
  place.write("pass.sir", R"(module @pass {
  entry @main(%put.x: f32[1, 2], %slot: i32[1], %sum.x: f32[2, 2]) -> (%put.x, %slot, %sum.x) {
  }
}
)");
  const ProgramRun passed =
      place.run("pass.sir", {"--inputs", "PLACE/both", "--out", "PLACE/all.npz"});
  REQUIRE_MESSAGE(passed.code == 0, passed.err);
  run({"--inputs", "PLACE/all.npz", "--out", "PLACE/out.safetensors"});
  const std::string all = read_whole(place.path("out.safetensors"));
  CHECK(floats_of(all, "put.rows.next") == Floats{0, 0, 11, 22});
  CHECK(floats_of(all, "sum.y") == Floats{100, 200, 311, 422});

  run({"--inputs", "PLACE/all.npz", "--phase", "sum", "--out", "PLACE/y.npy"});
  const std::string y = read_whole(place.path("y.npy"));
  CHECK(last_floats(y, 4) == Floats{100, 200, 300, 400});
  // A .npy is the only input, whatever its name.
  run({"--inputs", "PLACE/y.npy", "--phase", "sum", "--out", "PLACE/z.npy"});
  CHECK(read_whole(place.path("z.npy")) == y);

  const auto refused = [&](std::vector<std::string> options, const std::string& part) {
    options.insert(options.begin(), {"--weights", "PLACE/w"});
    place.refused("m.sir", options, 4, part);
  };
  refused({"--inputs", "PLACE/y.npy"},
          "y.npy: the file has one tensor without a name, there are 2 inputs: slot, x; give a "
          ".npz with their names: numpy.savez(FILE, NAME=array)");
  refused({"--inputs", "PLACE/all.npz", "--out", "PLACE/two.npy"},
          "two.npy: a .npy has one tensor, 2 are given; write .npz");
}

TEST_CASE("a value to keep is one of every entry that stores it") {
  const Rows place;
  const std::string out =
      place.results("m.sir", {"--weights", "PLACE/w", "--inputs", "PLACE/both", "--no-fuse",
                              "--phase", "put,sum", "--keep", "y"});
  CHECK(tensor_names(out) == std::vector<std::string>{"put.rows.next", "put.y", "sum.y"});
  CHECK(floats_of(out, "put.y") == Floats{11, 22});
  place.refused("m.sir", {"--weights", "PLACE/w", "--inputs", "PLACE/both", "--keep", "zzz"}, 2,
                "%zzz is not stored by this plan");
}

TEST_CASE("a module to keep is its last value") {
  const Place place;
  place.write("m.sir", R"(module @m {
  entry @f(%x: f32[4]) -> (%y) {
    %block.0.up = mul %x, %x : f32[4]
    %block.0.down = add %block.0.up, %x : f32[4]
    %y = exp %block.0.down : f32[4]
  }
})");
  const std::string out =
      place.results("m.sir", {"--random-inputs", "1", "--no-fuse", "--keep", "%block"});
  CHECK(tensor_names(out) == std::vector<std::string>{"block.0.down", "y"});
  place.refused("m.sir", {"--random-inputs", "1", "--keep", "block.0"}, 2,
                "%block.0.down is not stored by this plan");
}

TEST_CASE("random inputs repeat with their seed, and differ from call to call") {
  const Rows place;
  const auto y = [&](std::vector<std::string> options) {
    options.insert(options.end(), {"--weights", "PLACE/w", "--phase", "sum", "--symbol", "R=2"});
    return floats_of(place.results("m.sir", options), "y");
  };
  const Floats first = y({"--random-inputs", "5"});
  CHECK(first == y({"--random-inputs", "5"}));
  CHECK(first != y({"--random-inputs", "6"}));
  CHECK(first != y({"--random-inputs", "5", "--calls", "2"}));
  const std::string all = place.results("m.sir", {"--weights", "PLACE/w", "--random-inputs", "5"});
  CHECK(tensor_names(all) == std::vector<std::string>{"put.rows.next", "sum.y"});
}

TEST_CASE("a folder with model.sir runs with the weights beside it") {
  const Rows place;
  std::filesystem::create_directory(place.path("folder"));
  place.write("folder/model.sir", kRowsModule);
  place.refused("folder", {"--inputs", "PLACE/both"}, 4,
                "the model has no weights; give them with --weights FILE, or stand-ins");
  place.write("folder/model.safetensors", {f32_tensor("one", {2}, {1, 2})});
  CHECK(floats_of(place.results("folder", {"--inputs", "PLACE/both"}), "sum.y") ==
        Floats{100, 200, 311, 422});
}

TEST_CASE("inputs that do not fit are named") {
  const Rows place;
  const auto refused = [&](const std::vector<TestTensor>& tensors, const std::string& part,
                           const std::vector<std::string>& more = {}) {
    place.write("in", tensors);
    std::vector<std::string> options = {"--weights", "PLACE/w", "--inputs", "PLACE/in"};
    options.insert(options.end(), more.begin(), more.end());
    place.refused("m.sir", options, 4, part);
  };
  const TestTensor x = f32_tensor("put.x", {1, 2}, {1, 2}), slot = i32_tensor("slot", {1}, {0}),
                   sum = f32_tensor("sum.x", {2, 2}, {1, 2, 3, 4});
  refused({x, sum}, "in: there is no tensor \"put.slot\" or \"slot\" for input %slot of entry put");
  refused({x, slot}, "in: there is no tensor \"sum.x\" or \"x\" for input %x of entry sum");
  refused({f32_tensor("put.x", {2}, {1, 2}), slot, sum},
          "in: tensor put.x is F32 [2], the input is f32[N, 2]");
  refused({f32_tensor("put.x", {1, 3}, {1, 2, 3}), slot, sum},
          "in: tensor put.x is F32 [1, 3], the input is f32[N, 2]");
  refused({f32_tensor("put.slot", {1}, {0}), x, sum},
          "in: tensor put.slot is F32 [1], the input is i32[N]");
  refused({i32_tensor("slot", {2}, {0, 1}), x, sum},
          "in: symbol N is 1 by tensor put.x and 2 by tensor slot");
  refused({x, slot, sum}, "in: symbol R is 4 by --symbol and 2 by tensor sum.x",
          {"--symbol", "R=4"});
  refused({x, slot, f32_tensor("sum.x", {3, 2}, Floats(6))},
          "entry put: R is 3, the plan is for 2 to 16 in steps of 2");
  refused({x, slot, sum, f32_tensor("put.z", {1}, {1})},
          "in: tensor \"put.z\" is called like no input and no output of the entries; the module "
          "has put, sum");
  refused({x, slot, sum, sum}, "in: ");  // twice in one file
  // An output's name is one that a file of references may have.
  place.write("in", {x, slot, sum, f32_tensor("sum.y", {1}, {1})});
  CHECK(place.run("m.sir", {"--weights", "PLACE/w", "--inputs", "PLACE/in"}).code == 0);
}

TEST_CASE("the size of a state is one for all calls of a session") {
  const Rows place;
  place.write("m.sir", R"(module @m {
  symbol R in [1, 8]
  state %s : f32[R]
  entry @a(%x: f32[R]) -> (%y) {
    %y = add %x, %s : f32[R]
  }
  entry @b(%x: f32[R]) -> (%y) {
    %y = add %x, %s : f32[R]
  }
}
)");
  place.write("in", {f32_tensor("a.x", {1}, {1}), f32_tensor("b.x", {2}, {1, 2})});
  place.refused("m.sir", {"--inputs", "PLACE/in"}, 4,
                "symbol R, a size of state %s, is 1 in entry a (tensor a.x) and 2 in entry b "
                "(tensor b.x); states keep their size between the calls of a session");
  for (const char* entry : {"a", "b"})
    CHECK(place.run("m.sir", {"--inputs", "PLACE/in", "--phase", entry}).code == 0);
}

TEST_CASE("a command line that says no run is refused") {
  const Rows place;
  const auto refused = [&](const std::vector<std::string>& options, const std::string& part) {
    place.refused("m.sir", options, 2, part);
  };
  refused({}, "give either --tokens, or --inputs or --random-inputs");
  refused({"--tokens", "1", "--random-inputs", "1"}, "give either --tokens");
  refused({"--inputs", "a", "--random-inputs", "1"}, "--random-inputs 1 stands beside it");
  refused({"--tokens", "1", "--calls", "2"}, "--calls: only a run on --inputs");
  refused({"--random-inputs", "1", "--calls", "0"}, "--calls: \"0\" is below 1");
  refused({"--random-inputs", "1", "--symbol", "N=1", "--symbol", "N=2"},
          "--symbol: N is given twice, as 1 and as 2");
  refused({"--random-inputs", "1", "--symbol", "Q=1"}, "no symbol is called \"Q\"; it has N, R");
  refused({"--random-inputs", "1", "--phase", "put,none"},
          "no entry point is called \"none\"; the module has put, sum");
  for (const char* list : {",put", "put,", "put,,sum"})
    refused({"--random-inputs", "1", "--phase", list}, "is empty; write for example");
  refused({"--random-inputs", "1", "--weights", ""}, "--weights: the path is empty");
  refused({"--random-inputs", "1", "--weights", "PLACE/w", "--random-weights", "1"},
          "--random-weights 1 stands beside it");
}

}  // namespace
}  // namespace sinter::run_test
