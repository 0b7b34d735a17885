#include "plan/plan_file.h"

#include <doctest/doctest.h>

#include "ir/text.h"
#include "plan/kernel_text.h"
#include "plan/program_builder.h"

namespace sinter::plan_file_test {
namespace {

using test::sample_program;

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

void expect_refused(const std::string& text, const std::vector<std::string>& parts) {
  const Result<Program> program = read_plan(text, "dir/plan.json");
  REQUIRE_FALSE(program);
  CHECK(program.error().code == ExitCode::bad_input);
  for (const std::string& part : parts) {
    CAPTURE(program.error().message());
    CHECK(program.error().message().find(part) != std::string::npos);
  }
}

TEST_CASE("a plan that is read and written again has the same bytes") {
  const std::string text = write_plan(sample_program());
  const Result<Program> program = read_plan(text);
  if (!program) FAIL(program.error().message());
  CHECK(write_plan(*program) == text);
  CHECK(program->kernels[0].source.empty());
  CHECK(weights_fingerprint(*program) == weights_fingerprint(sample_program()));
}

TEST_CASE("every field survives") {
  Program before = sample_program();
  before.symbols[1].at_most = SymbolId{0};
  before.symbols[1].multiple = 4;
  Kernel& kernel = before.kernels[4];
  kernel.minimum_arch = 90;
  kernel.launch = {SymExpr(Dim(SymbolId{0})) * SymExpr(3) - SymExpr(1),
                   7,
                   SymExpr(Dim(SymbolId{0})) * SymExpr(Dim(SymbolId{1})),
                   5,
                   96,
                   100000,
                   SymExpr(Dim(SymbolId{0})) * SymExpr(64) + SymExpr(32),
                   4,
                   600,
                   132};
  GemmStep& gemm = test::gemm_step(before.entries[0], 2);
  gemm.loops.push_back({1, 2, 3, 64});
  gemm.b.column_stride = 1;
  gemm.residual = gemm.a.buffer;
  gemm.activation = Activation::gelu_tanh;
  before.numerics = Numerics::fast;
  Result<Program> after = read_plan(write_plan(before));
  if (!after) FAIL(after.error().message());
  CHECK(after->symbols[1].at_most == SymbolId{0});
  CHECK(after->symbols[1].multiple == 4);
  const Kernel& read = after->kernels[4];
  CHECK(read.minimum_arch == 90);
  CHECK(read.symbols == kernel.symbols);
  CHECK(read.launch.rows == kernel.launch.rows);
  CHECK(read.launch.items_per_row == 7);
  CHECK(read.launch.symbolic_items == kernel.launch.symbolic_items);
  CHECK(read.launch.items_per_block == 5);
  CHECK(read.launch.threads == 96);
  CHECK(read.launch.shared_bytes == 100000);
  CHECK(read.launch.wanted_shared_bytes == kernel.launch.wanted_shared_bytes);
  CHECK(read.launch.cluster == 4);
  CHECK(read.launch.items_without_clusters == 600);
  CHECK(read.launch.most_blocks == 132);
  CHECK(print_graph(read.group, after->symbols) == print_graph(kernel.group, before.symbols));
  CHECK(after->kernels[2].appends == before.kernels[2].appends);
  const EntryPlan& a = before.entries[0];
  EntryPlan& b = after->entries[0];
  CHECK(after->name == before.name);
  CHECK(a.output_names == b.output_names);
  REQUIRE(a.buffers.size() == b.buffers.size());
  for (size_t i = 0; i < a.buffers.size(); ++i) {
    CHECK(a.buffers[i].value == b.buffers[i].value);
    CHECK(a.buffers[i].type == b.buffers[i].type);
    CHECK(a.buffers[i].place == b.buffers[i].place);
    CHECK(a.buffers[i].index == b.buffers[i].index);
    CHECK(a.buffers[i].version == b.buffers[i].version);
    CHECK(a.buffers[i].slot == b.buffers[i].slot);
    CHECK(a.buffers[i].size_bytes == b.buffers[i].size_bytes);
    CHECK(a.buffers[i].last_step == b.buffers[i].last_step);
  }
  const GemmStep& read_gemm = test::gemm_step(b, 2);
  CHECK(read_gemm.bias == gemm.bias);
  CHECK(read_gemm.residual == gemm.residual);
  CHECK(read_gemm.activation == Activation::gelu_tanh);
  CHECK(after->numerics == Numerics::fast);
  CHECK(read_gemm.a.row_stride == gemm.a.row_stride);
  REQUIRE(read_gemm.loops.size() == 1);
  CHECK(read_gemm.loops[0].b_stride.is(3));
}

TEST_CASE("copies survive, and a plan that has one says so") {
  const std::string requires_line = "\"requires\": [\"copy\"]";
  const std::string text = write_plan(test::copying_program());
  CHECK(text.find(requires_line) != std::string::npos);
  Result<Program> program = read_plan(text);
  if (!program) FAIL(program.error().message());
  const CopyStep& copy = test::copy_step(program->entries[0], 1);
  CHECK(program->entries[0].buffers[copy.from].value == "a");
  CHECK(program->entries[0].buffers[copy.to].value == "b");
  CHECK(write_plan(*program) == text);
  CHECK(write_plan(sample_program()).find("copy") == std::string::npos);
}

TEST_CASE("collectives survive, and a plan that has one says so") {
  const std::string text = write_plan(test::reducing_program());
  CHECK(text.find("\"requires\": [\"collective\"]") != std::string::npos);
  Result<Program> program = read_plan(text);
  if (!program) FAIL(program.error().message());
  const EntryPlan& entry = program->entries[0];
  const CollectiveStep& run = test::collective_step(program->entries[0], 1);
  CHECK(entry.buffers[run.from].value == "a");
  CHECK(entry.buffers[run.to].value == "b");
  CHECK(entry.buffers[run.exchange].place == Buffer::Place::exchange);
  CHECK(run.group == "tp");
  CHECK(write_plan(*program) == text);
  expect_refused(replaced(text, R"("kind": "all_reduce")", R"("kind": "all_to_all")"),
                 {"/entries/0/steps/1/collective/kind", "all_reduce"});
}

TEST_CASE("copies: what the reader refuses") {
  const std::string text = write_plan(test::copying_program());
  const std::string whole = R"("copy": {"from": 1, "to": 2})";
  const auto refused = [&](std::string_view to, const std::vector<std::string>& parts) {
    CAPTURE(to);
    expect_refused(replaced(text, whole, to), parts);
  };
  const std::string where = "/entries/0/steps/1/";
  refused(R"("copies": {"from": 1, "to": 2})", {where + "kernel", "got nothing"});
  refused(R"("copy": [1, 2])", {where + "copy/from", "got nothing"});
  refused(R"("copy": {"to": 2})", {where + "copy/from", "got nothing"});
  refused(R"("copy": {"from": 1})", {where + "copy/to", "got nothing"});
  refused(R"("copy": {"from": "1", "to": 2})", {where + "copy/from", "expected an integer"});
  refused(R"("copy": {"from": 1, "to": 2.5})", {where + "copy/to", "expected an integer"});
  refused(R"("copy": {"from": -1, "to": 2})", {where + "copy/from"});
  refused(R"("copy": {"from": 1, "to": 4294967296})", {where + "copy/to"});
  refused(R"("copy": {"from": 4, "to": 2})", {"step 1 (%b)", "buffer 4 of 4"});
  refused(R"("copy": {"from": 1, "to": 0})", {"step 1 (%b)", "writes %x"});
  refused(R"("copy": {"from": 2, "to": 1})", {"step 1 (%b)", "%b is read before any step writes"});
}

TEST_CASE("row numbers to check survive, and a plan that has some says so") {
  const std::string text = write_plan(test::gathering_program());
  CHECK(text.find("\"requires\": [\"row_checks\"]") != std::string::npos);
  const Result<Program> program = read_plan(text);
  if (!program) FAIL(program.error().message());
  CHECK(write_plan(*program) == text);
  const std::vector<RowCheck>& checks = program->entries[0].row_checks;
  REQUIRE(checks.size() == 1);
  CHECK(program->entries[0].buffers[checks[0].buffer].value == "i");
  CHECK(checks[0].rows.is(32));
  CHECK(checks[0].op == "y");
  CHECK(write_plan(sample_program()).find("row_checks") == std::string::npos);
}

TEST_CASE("row numbers to check: what the reader refuses") {
  const std::string text = write_plan(test::gathering_program());
  const auto refused = [&](std::string_view from, std::string_view to,
                           const std::vector<std::string>& parts) {
    expect_refused(replaced(text, from, to), parts);
  };
  const std::string check = R"("row_checks": [{"buffer": 2, "rows": "32", "op": "y"}])";
  SUBCASE("none") {
    refused(check, R"("row_checks": [])", {"step 1 (%y)", "nothing looks at after the call"});
  }
  SUBCASE("no list") { refused(check, R"("row_checks": 1)", {"/entries/0/row_checks"}); }
  SUBCASE("no buffer") {
    refused(check, R"("row_checks": [{"buffer": 9, "rows": "32", "op": "y"}])",
            {"row numbers are buffer 9 of 4"});
  }
  SUBCASE("no number of rows") {
    refused(check, R"("row_checks": [{"buffer": 2, "op": "y"}])", {"/entries/0/row_checks/0/rows"});
  }
  SUBCASE("a kernel that is not checked") {
    refused("{checked = 1}", "", {"step 1 (%y)", "that nothing has checked, and is not checked"});
  }
}

TEST_CASE("how kernels overlap survives") {
  const Program before = test::overlapping_program();
  const Result<Program> after = read_plan(write_plan(before));
  if (!after) FAIL(after.error().message());
  for (size_t i = 0; i < before.kernels.size(); ++i)
    CHECK(after->kernels[i].overlap == before.kernels[i].overlap);
}

TEST_CASE("how kernels overlap: what the reader refuses") {
  const std::string text = write_plan(test::overlapping_program());
  const std::string of_attend =
      R"("overlap": {"waits": true, "triggers_after_wait": false, "early_inputs": [0, 3, 4], "early_caches": [1, 2]})";
  const auto refused = [&](std::string_view from, std::string_view to,
                           const std::vector<std::string>& parts) {
    CAPTURE(to);
    expect_refused(replaced(text, of_attend, replaced(of_attend, from, to)), parts);
  };
  const std::string where = "/kernels/2/overlap";
  SUBCASE("missing") {
    refused("\"overlap\"", "\"overlaps\"", {where + "/waits", "got nothing"});
    refused("\"waits\": true, ", "", {where + "/waits", "got nothing"});
    refused("\"triggers_after_wait\": false, ", "",
            {where + "/triggers_after_wait", "got nothing"});
    refused("\"early_inputs\": [0, 3, 4], ", "", {where + "/early_inputs", "got nothing"});
    refused(", \"early_caches\": [1, 2]", "", {where + "/early_caches", "got nothing"});
  }
  SUBCASE("of another type") {
    refused(of_attend.substr(std::string("\"overlap\": ").size()), "true", {where});
    refused("\"waits\": true", "\"waits\": 1", {where + "/waits", "true or false"});
    refused("\"triggers_after_wait\": false", "\"triggers_after_wait\": null",
            {where + "/triggers_after_wait", "true or false"});
    refused("[0, 3, 4]", "{\"0\": 3}", {where + "/early_inputs"});
    refused("[0, 3, 4]", "[0, \"3\", 4]", {where + "/early_inputs/1", "expected an integer"});
    refused("[1, 2]", "[1, [2]]", {where + "/early_caches/1", "expected an integer"});
  }
  SUBCASE("numbers that no index has") {
    refused("[0, 3, 4]", "[0, 3, -1]", {where + "/early_inputs/2"});
    refused("[0, 3, 4]", "[0, 3, 4294967296]", {where + "/early_inputs/2"});
    refused("[0, 3, 4]", "[0, 3, 1.5]", {where + "/early_inputs/2", "expected an integer"});
    refused("[0, 3, 4]", "[0, 3, 4, 5]", {"kernel attend", "reads input 5 of 5"});
    refused("[1, 2]", "[4294967295]", {"kernel attend", "reads input 4294967295 of 5"});
  }
  SUBCASE("what is not safe") {
    refused("\"waits\": true", "\"waits\": false", {"kernel attend", "does not wait"});
    refused("[0, 3, 4], \"early_caches\": [1, 2]", "[0, 1, 3, 4], \"early_caches\": [2]",
            {"step 2 (%o)", "reads %k1 before it waits"});
    refused("[1, 2]", "[1, 1]", {"kernel attend", "lists input 1 twice"});
  }
}

TEST_CASE("what the reader refuses") {
  const std::string text = write_plan(sample_program());
  SUBCASE("another major version") {
    expect_refused(replaced(text, fmt::format("\"major\": {}", kPlanMajor), "\"major\": 1"),
                   {"plan format 1, written by sinter 0.1.0",
                    fmt::format("reads format {}", kPlanMajor), "dir/plan.json#/format/major"});
  }
  SUBCASE("an unknown feature") {
    expect_refused(replaced(text, "\"gemm\"", "\"packed\""), {"needs the feature \"packed\""});
  }
  SUBCASE("no JSON") { expect_refused(text.substr(0, text.size() / 2), {"not JSON"}); }
  SUBCASE("no plan") { expect_refused("{}", {"/format/major", "got nothing"}); }
  SUBCASE("an id outside its table") {
    expect_refused(replaced(text, "\"inputs\": [0, 1]", "\"inputs\": [0, 4294967295]"),
                   {"input 1 is buffer 4294967295"});
  }
  SUBCASE("an id that is no integer") {
    expect_refused(replaced(text, "\"inputs\": [0, 1]", "\"inputs\": [0, 1e9]"),
                   {"/entries/0/inputs/1", "expected an integer"});
  }
  SUBCASE("a number beyond 63 bits") {
    expect_refused(replaced(text, "\"bytes\": \"256*N\"", "\"bytes\": \"9223372036854775807*N*2\""),
                   {"/entries/0/buffers", "exceeds 63 bits"});
  }
  SUBCASE("an unknown symbol") {
    expect_refused(replaced(text, "\"bytes\": \"256*N\"", "\"bytes\": \"256*Q\""),
                   {"\"Q\" is neither a symbol"});
  }
  SUBCASE("an unknown kernel") {
    expect_refused(replaced(text, "\"kernel\": \"neg\"", "\"kernel\": \"abs\""),
                   {"/entries/0/steps/0/kernel", "no kernel abs"});
  }
  SUBCASE("text IR that is wrong") {
    expect_refused(replaced(text, "= exp ", "= exq "), {"/kernels/1/group", "exq"});
  }
  SUBCASE("weights that do not have the fingerprint") {
    expect_refused(replaced(text, "0x1p-1", "0x1p+0"), {"/weights_fingerprint"});
  }
  SUBCASE("a plan that is not safe") {
    expect_refused(replaced(text, "\"slot\": 2", "\"slot\": 0"), {"and %d", "share slot 0"});
  }
  SUBCASE("deep nesting") {
    const std::string open(1000000, '['), close(1000000, ']');
    expect_refused(open, {"not JSON"});
    expect_refused(fmt::format(R"({{"format": {{"major": {}{}}}}})", open, close),
                   {"/format/major", "got an array"});
  }
}

TEST_CASE("an integer that no double equals is read back exactly, and requires a feature") {
  const Program doubles = sample_program();
  CHECK(write_plan(doubles).find("exact_integers") == std::string::npos);
  for (const int64_t integer : {(int64_t{1} << 53) + 1, INT64_MAX, INT64_MIN + 1}) {
    Program program = doubles;
    const std::string exact = fmt::format("value = {}", integer);
    program.weights[1].init.mutable_ops()[0].attrs.set(AttrName::value, Number(integer));
    const std::string text = write_plan(program);
    CHECK(text.find("\"exact_integers\"") != std::string::npos);
    CHECK(text.find(exact) != std::string::npos);
    const Result<Program> again = read_plan(text);
    REQUIRE(again);
    CHECK(again->weights[1].init.ops()[0].attrs.get<Number>(AttrName::value) == Number(integer));
    CHECK(write_plan(*again) == text);
  }
}

TEST_CASE("every prefix and every changed byte is an error or a safe plan") {
  for (const Program& program :
       {sample_program(), test::copying_program(), test::gathering_program()}) {
    const std::string text = write_plan(program);
    for (size_t i = 0; i + 1 < text.size(); i += 7) {  // without its last line break it is whole
      std::string changed = text;
      changed[i] = static_cast<char>("09[]{}\",-\x01\xff"[i % 11]);
      (void)read_plan(changed);
      CHECK_FALSE(read_plan(std::string_view(text).substr(0, i)));
    }
  }
}

TEST_CASE("kernel text is tied to its plan") {
  Program program = *read_plan(write_plan(sample_program()));
  CHECK(kernel_path(program.kernels[0]) == "kernels/neg.cu");
  const std::string text = sample_program().kernels[0].source;
  CHECK_FALSE(attach_source(program, 0, text + "\n"));
  CHECK(program.kernels[0].source.empty());
  CHECK(attach_source(program, 0, text));
  CHECK(program.kernels[0].source == text);
}

TEST_CASE("a kernel whose text states something else than the plan is refused") {
  const Program whole = sample_program();
  const SymExpr n = Dim(SymbolId{0});
  const auto refusal = [&](const std::function<void(Kernel&)>& change) {
    Program program = whole;
    for (Kernel& kernel : program.kernels) kernel.source_hash = text_hash(kernel);
    Kernel& kernel = program.kernels[0];
    const std::string text = kernel.source;
    change(kernel);
    const Status status = attach_source(program, 0, text);
    return status ? std::string() : status.error().message();
  };
  REQUIRE(refusal([](Kernel&) {}).empty());
  const std::pair<const char*, std::function<void(Kernel&)>> changes[] = {
      {"rows 0", [](Kernel& k) { k.launch.rows = 0; }},
      {"rows 2*n0", [&](Kernel& k) { k.launch.rows = n * SymExpr(2); }},
      {"items_per_row 3", [](Kernel& k) { k.launch.items_per_row = 3; }},
      {"symbolic_items n0", [&](Kernel& k) { k.launch.symbolic_items = n; }},
      {"items_per_block 2", [](Kernel& k) { k.launch.items_per_block = 2; }},
      {"threads 1", [](Kernel& k) { k.launch.threads = 1; }},
      {"shared_bytes 16", [](Kernel& k) { k.launch.shared_bytes = 16; }},
      {"wanted_shared_bytes n0", [&](Kernel& k) { k.launch.wanted_shared_bytes = n; }},
      {"cluster 2", [](Kernel& k) { k.launch.cluster = 2; }},
      {"items_without_clusters 9", [](Kernel& k) { k.launch.items_without_clusters = 9; }},
      {"most_blocks 1", [](Kernel& k) { k.launch.most_blocks = 1; }},
      {"waits true", [](Kernel& k) { k.overlap.waits = true; }},
      {"triggers_after_wait true", [](Kernel& k) { k.overlap.triggers_after_wait = true; }},
      {"early_inputs [0]", [](Kernel& k) { k.overlap.early_inputs = {0}; }},
      {"early_caches [0]", [](Kernel& k) { k.overlap.early_caches = {0}; }},
      {"minimum_arch: 90", [](Kernel& k) { k.minimum_arch = 90; }},
      {"silu", [](Kernel& k) { k.group[k.group.outputs[0]].kind = OpKind::silu; }},
      {"f16[n0", [](Kernel& k) { k.group[k.group.outputs[0]].type.dtype = DType::f16; }},
      {"graph(", [](Kernel& k) { k.symbols.clear(); }},
      {"other(", [](Kernel& k) { k.name = "other"; }}};
  for (const auto& [stated, change] : changes) {
    const std::string message = refusal(change);
    CAPTURE(stated);
    CAPTURE(message);
    CHECK(message.find("plan.json asks for the line") != std::string::npos);
    CHECK(message.find(stated) != std::string::npos);
    CHECK(message.find("kernels/") != std::string::npos);
  }
}

TEST_CASE("a kernel whose function differs from the comment of its text is refused") {
  const Program whole = sample_program();
  const Kernel& kernel = whole.kernels[0];
  REQUIRE(check_text(kernel, whole.symbols, kernel.source));
  CHECK(check_text(kernel, whole.symbols,
                   replaced(kernel.source, "__launch_bounds__(256)", "__launch_bounds__(256, 2)")));
  const std::pair<const char*, const char*> changes[] = {
      {"__launch_bounds__(256)", "__launch_bounds__(2560)"},
      {"__launch_bounds__(256)", "__launch_bounds__(128)"},
      {"extern \"C\" ", ""},
      {", long long n0) {", ") {"},
      {"const float* __restrict__ x0", "const half* __restrict__ x0"}};
  for (const auto& [from, to] : changes) {
    CAPTURE(to);
    CHECK_FALSE(check_text(kernel, whole.symbols, replaced(kernel.source, from, to)));
  }
}

TEST_CASE("the fingerprint is of names, types and functions") {
  const std::string one = weights_fingerprint(sample_program());
  Program other = sample_program();
  other.entries[0].steps.clear();
  CHECK(weights_fingerprint(other) == one);
  other.weights[1].init.mutable_ops()[0].attrs.set(AttrName::value, 0.25);
  CHECK(weights_fingerprint(other) != one);
}

}  // namespace
}  // namespace sinter::plan_file_test
