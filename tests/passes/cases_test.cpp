// How cases are run (the cases themselves are tests of their own): that a wrong answer is found.
#include <doctest/doctest.h>

#include "passes/case_run.h"
#include "support/expected_text.h"

namespace sinter::test::cases_test {
namespace {

constexpr const char* kSmall = R"(// An add and its user.
module @m {
  entry @f(%x: f32[4, 64]) -> (%b) {
    %a = add %x, %x : f32[4, 64]
    %b = mul %a, %a : f32[4, 64]
  }
}
// why a b:
//   convexity.path
)";

TEST_CASE("a wrong answer is replaced by today's and shown") {
  const CaseResult result = run_case(kSmall, "small");
  CHECK(result.failure == "");
  CHECK(result.text.ends_with("// why a b:\n//   fused\n"));
  CHECK(line_difference(kSmall, result.text) ==
        "  // why a b:\n- //   convexity.path\n+ //   fused\n");
  CHECK(case_commands(result, "run", "small.sir") ==
        "run it alone:            run small.sir\n"
        "accept the lines with +: SINTER_BLESS=1 run small.sir\n");
}

TEST_CASE("a right answer stays as it is") {
  const std::string once = run_case(kSmall, "small").text;
  CHECK(run_case(once, "small").text == once);
}

TEST_CASE("the passes up to one whose module is another show that module") {
  const CaseResult result = run_case(std::string(kSmall) + "// after merge_linears:\n", "small");
  CHECK(result.text.find("// after merge_linears:\n//   module @m {\n//     entry") !=
        std::string::npos);
  CHECK(case_commands(result, "run", "small.sir")
            .ends_with(
                "sinter opt --pass canonicalize,label_sums,padded_formulas,recognize_attention,"
                "fold_positions,attention_masks,shared_heads,merge_linears small.sir\n"));
  CHECK(run_case(result.text, "small").changed_passes.empty());
}

TEST_CASE("an error that no question asks for is a failure") {
  CHECK(run_case("// An error.\nmodule @m {\n  nonsense\n}\n", "cases/small.sir")
            .failure.starts_with("small.sir:3:3: "));
  CHECK(run_case(std::string(kSmall) + "// why a nowhere:\n", "small").failure ==
        "no value is called nowhere");
}

}  // namespace
}  // namespace sinter::test::cases_test
