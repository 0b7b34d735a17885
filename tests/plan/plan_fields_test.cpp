// Every field of plan.json: what it must equal, and a change that is refused. A field that stands
// for nothing else in the plan says so, and its change is accepted.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "plan/plan_file.h"
#include "plan/program_builder.h"

namespace sinter::plan_fields_test {
namespace {

using Json = nlohmann::json;

/// The sample with a product in two parts that has an epilogue, a tensor map, a pair in place and a
/// launch in clusters. Its buffers: x 0, slot 1, w 2, bias 3, k0 4, k1 5, a 6, b 7, c 8, d 9, y 10.
Program product_program() {
  Program program = test::sample_program();
  program.numerics = Numerics::fast;
  GemmStep& gemm = test::gemm_step(program.entries[0], 2);
  gemm.residual = gemm.a.buffer;
  gemm.activation = Activation::relu;
  gemm.n = 32;
  gemm.loops.push_back({2, 0, 32, 32});
  program.kernels[0].tensor_maps.push_back(
      {0, 0, {64, SymExpr(Dim(SymbolId{0}))}, {64}, {32, 8}, 128});
  Kernel& add = program.kernels[4];
  add.in_place = {{0, 0}};
  add.minimum_arch = 90;
  add.launch.cluster = 2;
  add.launch.most_blocks = 132;
  return program;
}

/// y = -x, of few rows by a kernel for them alone.
Program variants_program() {
  test::ProgramBuilder p;
  const TensorType tokens{DType::f32, {p.symbol("N", 1, 64), 64}};
  p.symbol("R", 1, 64);
  const uint32_t x = p.input("x", tokens), y = p.arena("y", tokens, 0);
  p.kernel("neg", {x}, {y},
           [](Builder& g, std::vector<ValueId> in) { return std::vector{g.neg(in[0])}; });
  p.output(y);
  Program program = p.finish();
  program.kernels.push_back(program.kernels[0]);
  program.kernels[1].name = "neg_few";
  program.kernels[1].range = {SymbolId{0}, 1, 8};
  program.entries.push_back(program.entries[0]);
  program.entries[0].range = {SymbolId{0}, 1, 8};
  program.entries[1].range = {SymbolId{0}, 9, 64};
  test::kernel_step(program.entries[0], 0).kernel = 1;
  return program;
}

Json json_of(const Program& program) { return Json::parse(write_plan(program)); }

const Json& plan(char which) {
  static const Json product = json_of(product_program()), variants = json_of(variants_program()),
                    copying = json_of(test::copying_program()),
                    gathering = json_of(test::gathering_program()),
                    overlapping = json_of(test::overlapping_program());
  return which == 'p'   ? product
         : which == 'v' ? variants
         : which == 'c' ? copying
         : which == 'g' ? gathering
                        : overlapping;
}

struct Field {
  char plan;            // of the product, variants, copying, gathering, overlapping
  const char* pointer;  // the field that is changed
  const char* equals;   // what it is compared with
  Json changed;         // the new value; of a line of text: {from, to}
  const char* message;  // a part of the refusal; null: accepted
};

/// A new buffer on memory that another buffer has.
Json twin(const char* type, const char* place, int index) {
  return {{"value", "twin"}, {"type", type}, {"place", place}, {"index", index}, {"version", 0}};
}

const std::vector<Field>& fields() {
  static const std::vector<Field> all = {
      {'p', "/format/name", "the name of the format", "sinter.manifest", "expected sinter.plan"},
      {'p', "/format/major", "the library's version of it", 1, "plan format 1"},
      {'p', "/format/requires/0", "the features of the library", "packed", "\"packed\""},
      {'p', "/sinter", "nothing: for messages", "0.0.0", nullptr},
      {'p', "/numerics", "the epilogues of products", "strict", "in a plan with strict numerics"},
      {'p', "/target", "the manifest's target, by StoredPlan", "sm_80", nullptr},
      {'p', "/weights_fingerprint", "the weights of `module`", "0", "fingerprint 0 for weights"},
      {'p', "/module/1", "the rules of modules", {"[1, 64]", "[2, 1]"}, "symbol N is in [2, 1]"},
      {'p', "/module/3", "weights_fingerprint", {"\"w\"", "\"v\""}, "weights_fingerprint"},
      {'p', "/module/5", "types of buffers", {"[R, 64]", "[R, 32]"}, "f32[R, 32] in state 0"},
      {'p', "/kernels/0/name", "names of other kernels", "exp", "kernels/exp.cu"},
      {'p', "/kernels/0/file", "name", "kernels/exp.cu", "expected kernels/neg.cu"},
      {'p', "/kernels/0/hash", "the kernel's text, by attach_source()", "0", nullptr},
      {'p', "/kernels/4/minimum_arch", "launch/cluster", 80, "have none before sm_90"},
      {'o', "/kernels/2/overlap/waits", "early_inputs", false, "but does not wait"},
      {'o', "/kernels/1/overlap/triggers_after_wait", "early_inputs of later steps", false,
       "before it waits, while"},
      {'o', "/kernels/2/overlap/early_inputs/0", "inputs of the group", 5, "reads input 5 of 5"},
      {'o', "/kernels/2/overlap/early_caches/0", "caches of the group", 0, "lists input 0 twice"},
      {'p', "/kernels/0/symbols/0", "symbols of the group", "R", "the group has [N]"},
      {'v', "/kernels/1/range/symbol", "symbols", "Q", "no symbol Q"},
      {'v', "/kernels/1/range/low", "ranges of entries", 2, "made for N in [2, 8] alone"},
      {'v', "/kernels/1/range/high", "ranges of entries", 7, "made for N in [1, 7] alone"},
      {'p', "/kernels/0/launch/rows", "results of the group", "0", "may have no items"},
      {'p', "/kernels/2/launch/rows", "0 and more", "N - 2",
       "N - 2 rows or items, which can be neg"},
      {'p', "/kernels/0/launch/items_per_row", "results of the group", 0, "may have no items"},
      {'p', "/kernels/0/launch/symbolic_items", "results of the group", "N - 1", "no items"},
      {'p', "/kernels/0/launch/items_per_block", "1 and more", 0, "0 items a block"},
      {'p', "/kernels/0/launch/threads", "1 .. 1024", 1025, "1025 threads"},
      {'p', "/kernels/0/launch/shared_bytes", "0 .. 227 KiB", 232449, "232449 shared bytes"},
      {'p', "/kernels/0/launch/wanted_shared_bytes", "symbols", "Q", "neither a symbol"},
      {'p', "/kernels/4/launch/cluster", "1 .. 8", 9, "clusters of 9"},
      {'p', "/kernels/0/launch/items_without_clusters", "0 and more", -1, "from -1 items on"},
      {'p', "/kernels/4/launch/most_blocks", "0 and more", -1, "at most -1 blocks"},
      {'p', "/kernels/0/tensor_maps/0/input", "inputs of the group", 1, "of input 1 of 1"},
      {'p', "/kernels/0/tensor_maps/0/offset", "elements of the input", "4", "reaches element"},
      {'p', "/kernels/0/tensor_maps/0/dims/0", "elements of the input", "68", "reaches element"},
      {'p', "/kernels/0/tensor_maps/0/strides/0", "elements of the input", "128", "reaches"},
      {'p', "/kernels/0/tensor_maps/0/box/0", "1 .. 256", 0, "a box of 0 elements"},
      {'p', "/kernels/0/tensor_maps/0/swizzle", "rows of the box", 64, "128 bytes with a swizzle"},
      {'p', "/kernels/4/in_place/0/output", "outputs of the group", 1, "output 1 of 1 in"},
      {'p', "/kernels/4/in_place/0/input", "inputs of the group", 2, "of input 2 of 2"},
      {'p', "/kernels/2/appends/0", "appends of the group", 1, "[1] are listed as appends"},
      {'p', "/kernels/0/group/0", "types of arguments", {"N, 64", "N, 32"}, "V8"},
      {'p', "/kernels/0/group/1", "types of operands", {"f32", "f16"}, "V8"},
      {'v', "/entries/1/name", "the other variants", "other", "no other variant has"},
      {'v', "/entries/1/range/symbol", "the other variants", "R", "by different symbols"},
      {'v', "/entries/1/range/low", "the variant before it", 8, "where one from 9"},
      {'v', "/entries/1/range/high", "the symbol's range", 63, "no variant for N from 64"},
      {'p', "/entries/0/inputs/0", "place and index of buffers", 1, "input 0 is buffer 1"},
      {'p', "/entries/0/outputs/0", "buffers", 11, "an output is buffer 11 of 11"},
      {'p', "/entries/0/outputs/0", "values that a step writes", 6, "%a is planned for steps"},
      {'v', "/entries/0/output_names/0", "the other variants", "z", "variant with the outputs"},
      {'g', "/entries/0/row_checks/0/buffer", "the numbers of a kernel", 0, "nothing looks at"},
      {'g', "/entries/0/row_checks/0/buffer", "i32", 3, "holds no row numbers"},
      {'g', "/entries/0/row_checks/0/rows", "rows of the kernel's table", "33", "nothing looks at"},
      {'g', "/entries/0/row_checks/0/op", "nothing: for messages", "other", nullptr},
      {'v', "/entries/1/buffers/0/value", "the other variants", "z", "variant with the inputs"},
      {'p', "/entries/0/buffers/0/type", "arguments of kernels", "f32[N, 32]", "is f32[N, 32]"},
      {'p', "/entries/0/buffers/2/type", "the weight", "f32[32, 128]", "f32[64, 64] in weight 0"},
      {'p', "/entries/0/buffers/4/type", "the state", "f32[N, 64]", "f32[R, 64] in state 0"},
      {'p', "/entries/0/buffers/8/type", "bytes", "f32[N, 128]", "256*N bytes for a value"},
      {'p', "/entries/0/buffers/8/type", "the rules of types", "f32[N, 281474976710656]", "2^48"},
      {'p', "/entries/0/buffers/2/place", "inputs of the entry", "input", "which lists buffer 0"},
      {'p', "/entries/0/buffers/2/index", "weights", 1, "f32[64] in weight 1"},
      {'p', "/entries/0/buffers/1/index", "inputs of the entry", 0, "not the place of input 1"},
      {'p', "/entries/0/buffers/4/index", "states", 1, "state 1 of 1"},
      {'p', "/entries/0/buffers/-", "inputs of the entry", twin("f32[4096]", "input", 0),
       "buffer 11 is in the place of input 0 of 2, which lists buffer 0"},
      {'p', "/entries/0/buffers/-", "inputs of the entry", twin("f32[N, 64]", "input", 2),
       "buffer 11 is in the place of input 2 of 2, which lists none"},
      {'p', "/entries/0/buffers/-", "weights", twin("f32[4096]", "weight", 0), "in weight 0"},
      {'p', "/entries/0/buffers/-", "states", twin("f32[4096]", "state", 0), "in state 0"},
      {'p', "/entries/0/buffers/5/version", "appends before it", 2, "version 2, after version 0"},
      {'p',
       "/entries/0/buffers/-",
       "appends of the entry",
       {{"value", "twin"},
        {"type", "f32[R, 64]"},
        {"place", "state"},
        {"index", 0},
        {"version", 2}},
       "%twin is version 2 of its state, the steps write versions up to 1"},
      {'p', "/entries/0/buffers/9/bytes", "the rules of sizes", "N*N*N*N*N*N*N*N*N*N",
       "a product of more than 9 factors"},
      {'p', "/entries/0/buffers/9/slot", "lives of other buffers", 0, "share slot 0"},
      {'p', "/entries/0/buffers/9/bytes", "type", "512*N", "512*N bytes for a value of type"},
      {'p', "/entries/0/buffers/9/steps/0", "steps", 3, "planned for steps 3 to 5"},
      {'p', "/entries/0/buffers/9/steps/1", "steps", 4, "planned for steps 4 to 4"},
      {'p', "/entries/0/steps/0/values/0", "nothing: for messages", "other", nullptr},
      {'p', "/entries/0/steps/0/kernel", "kernels", "add", "1 inputs for a kernel with 2"},
      {'p', "/entries/0/steps/0/inputs/0", "inputs of the group", 1, "input 0, %slot, is i32[N]"},
      {'p', "/entries/0/steps/0/outputs/0", "outputs of the group", 2, "output 0, %w, is f32[64"},
      {'p', "/entries/0/steps/2/gemm/m", "the result", "N - 1", "of the result %c are written"},
      {'p', "/entries/0/steps/2/gemm/n", "the result", "33", "operand B reaches element 4097"},
      {'p', "/entries/0/steps/2/gemm/k", "the operands", "65", "operand A"},
      {'p', "/entries/0/steps/2/gemm/a/buffer", "buffers", 1, "i32 (%slot) times f32"},
      {'p', "/entries/0/steps/2/gemm/a/offset", "the operand", "1", "operand A reaches"},
      {'p', "/entries/0/steps/2/gemm/a/row_stride", "the operand", "65", "operand A reaches"},
      {'p', "/entries/0/steps/2/gemm/a/column_stride", "the operand", "2", "operand A (%b)"},
      {'p', "/entries/0/steps/2/gemm/b/buffer", "buffers", 3, "operand B reaches element"},
      {'p', "/entries/0/steps/2/gemm/b/offset", "the operand", "1", "operand B reaches"},
      {'p', "/entries/0/steps/2/gemm/b/row_stride", "the operand", "65", "operand B reaches"},
      {'p', "/entries/0/steps/2/gemm/b/column_stride", "the operand", "2", "operand B (%w)"},
      {'p', "/entries/0/steps/2/gemm/c/buffer", "buffers", 7, "writes %b, which it reads"},
      {'p', "/entries/0/steps/2/gemm/c/offset", "the result", "1", "operand C reaches"},
      {'p', "/entries/0/steps/2/gemm/c/row_stride", "the result", "65", "operand C reaches"},
      {'p', "/entries/0/steps/2/gemm/c/column_stride", "the result", "2", "operand C (%c)"},
      {'p', "/entries/0/steps/2/gemm/bias", "the result", 1, "bias %slot is i32"},
      {'p', "/entries/0/steps/2/gemm/residual", "the result", 3, "residual %bias is f32 with 64"},
      {'p', "/entries/0/steps/2/gemm/activation", "activations", "tanh", "relu or gelu_tanh"},
      {'p', "/entries/0/steps/2/gemm/loops/0/count", "the result", "3", "operand B reaches"},
      {'p', "/entries/0/steps/2/gemm/loops/0/a_stride", "the operand", "1", "operand A reaches"},
      {'p', "/entries/0/steps/2/gemm/loops/0/b_stride", "the operand", "64", "operand B reaches"},
      {'p', "/entries/0/steps/2/gemm/loops/0/c_stride", "the result", "31", "is written twice"},
      {'c', "/entries/0/steps/1/copy/from", "types of both", 4, "buffer 4 of 4"},
      {'c', "/entries/0/steps/1/copy/to", "places of buffers", 0, "writes %x"}};
  return all;
}

/// The pointer without numbers of items.
std::string pattern(const std::string& pointer) {
  return std::regex_replace(pointer, std::regex("/([0-9]+|-)(?=/|$)"), "/*");
}

TEST_CASE("each field of a plan is compared with what it must equal") {
  for (const Field& field : fields()) {
    CAPTURE(std::string(field.pointer));
    CAPTURE(std::string(field.equals));
    Json changed = plan(field.plan);
    const Json::json_pointer at(field.pointer);
    if (field.changed.is_array()) {
      std::string line = changed.at(at);
      const std::string from = field.changed[0];
      REQUIRE(line.find(from) != std::string::npos);
      changed[at] = line.replace(line.find(from), from.size(), field.changed[1]);
    } else {
      changed[at] = field.changed;
    }
    const auto read = read_plan(changed.dump());
    const std::string message = read ? "" : read.error().message();
    CAPTURE(message);
    CHECK(read.has_value() == (field.message == nullptr));
    if (field.message) CHECK(message.find(field.message) != std::string::npos);
  }
}

TEST_CASE("variants have the same outputs, name by name, and stand together") {
  Json plan = json_of(variants_program());
  Json& entries = plan["entries"];
  const auto message = [&] {
    const auto read = read_plan(plan.dump());
    return read ? std::string() : read.error().message();
  };
  SUBCASE("one output whose name reads like two") {
    entries[0]["output_names"] = {"y: f32[N, 64]; %z"};
    entries[1]["outputs"] = {1, 1};
    entries[1]["output_names"] = {"y", "z"};
    CHECK(message().find("has a variant with the outputs") != std::string::npos);
  }
  SUBCASE("another entry between them") {
    entries[1].erase("range");
    entries[0] = entries[1];
    entries[0]["name"] = "other";
    entries = {entries[1], entries[0], entries[1]};
    CHECK(message().find("entry forward: another entry stands between variants of this name") !=
          std::string::npos);
  }
}

TEST_CASE("the table has every field of a plan") {
  std::set<std::string> written, asked;
  for (char which : {'p', 'v', 'c', 'g', 'o'}) {
    const Json flat = plan(which).flatten();
    for (const auto& [pointer, value] : flat.items())
      if (!value.is_structured() && !value.is_null()) written.insert(pattern(pointer));
  }
  for (const Field& field : fields()) asked.insert(pattern(field.pointer));
  asked.erase("/entries/*/buffers/*");  // whole buffers
  CHECK(written == asked);
}

}  // namespace
}  // namespace sinter::plan_fields_test
