// Each refusal ends with what would have to change. What it says of other plans is compared with
// these plans.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "runtime/temporary_directory.h"

namespace sinter::change_test {
namespace {

const std::string kSamples = SINTER_SAMPLES_DIR "/";

std::string answer(const std::string& model, const std::string& a, const std::string& b,
                   const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {"explain", kSamples + model, "--why", a, b};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const ProgramRun run = run_program(arguments);
  REQUIRE_MESSAGE(run.code == 0, run.err);
  return run.out;
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("pre-LN: attention stands between norm and residual; post-LN: they share a kernel") {
  constexpr const char* kClaim =
      "with the norm behind the residual add (post-LN) they would share one";
  for (const bool swapped : {false, true}) {
    const std::string pre = swapped ? answer("pre_ln_block.sir", "res1", "norm1")
                                    : answer("pre_ln_block.sir", "norm1", "res1");
    CHECK(holds(pre, "norm1 → qkv → attn → attn_out → res1"));
    CHECK(
        holds(pre, fmt::format("  no kernel can hold both while attn needs norm1 and is needed by "
                               "res1; res1 fuses with norm2 (saves 1.57 MB); {}\n",
                               kClaim)));
  }
  CHECK(holds(answer("post_ln_block.sir", "res1", "norm1"), "res1 and norm1 share a kernel"));
  CHECK(holds(answer("post_ln_block.sir", "res2", "norm2"), "res2 and norm2 share a kernel"));
  CHECK_FALSE(holds(answer("post_ln_block.sir", "norm1", "res2"), "post-LN"));
  // In a decode step the add is in the epilogue of a product, which cannot hold a norm.
  const std::string both = answer("attention_cache.sir", "norm", "res");
  const size_t decode = both.find("\ndecode: ");
  REQUIRE(decode != std::string::npos);
  CHECK(holds(both.substr(0, decode), kClaim));
  CHECK_FALSE(holds(both.substr(decode), "post-LN"));
}

TEST_CASE("strict numerics: what fast ones save, for each layer of a model") {
  const auto saved = [](const std::string& model, const char* a, const char* b, const char* entry) {
    const ProgramRun run = run_program({"explain", kSamples + model, "--numerics", "fast",
                                        "--phase", entry, "--json", "--why", a, b});
    REQUIRE_MESSAGE(run.code == 0, run.err);
    const auto answer = nlohmann::json::parse(run.out)["answers"][0];
    CHECK(answer["same_kernel"] == true);
    return answer["saved_bytes"].get<int64_t>();
  };
  CHECK(holds(answer("llama-2-7b.json", "l0.mlp.down", "l0.res2", {"--phase", "prefill"}),
              "  fast numerics (--numerics fast) would save 8.39 MB a layer\n"));
  CHECK(saved("llama-2-7b.json", "l0.mlp.down", "l0.res2", "prefill") == 2 * 512 * 4096 * 2);
  CHECK(holds(answer("pre_ln_block.sir", "attn_out", "res1"), "would save 3.15 MB\n"));
  CHECK(saved("pre_ln_block.sir", "attn_out", "res1", "block") == 2 * 512 * 768 * 4);
  // At other sizes it is another saving.
  CHECK(holds(answer("llama-2-7b.json", "l0.mlp.down", "l0.res2",
                     {"--phase", "prefill", "--symbol", "N=2048"}),
              "would save 33.6 MB a layer\n"));
}

TEST_CASE("a library call: the entry in which its product takes neighbours") {
  const std::string both = answer("llama-2-7b.json", "l0.norm1", "l0.qkv");
  CHECK(holds(both, "prefill: l0.norm1 and l0.qkv do not share a kernel"));
  CHECK(holds(both,
              "  l0.qkv is a call of cuBLASLt; in decode, where it is a gemv, they share a "
              "kernel\n"));
  CHECK(holds(both, "\ndecode: l0.norm1 and l0.qkv share a kernel"));
  CHECK(holds(answer("pre_ln_block.sir", "norm1", "qkv"),
              "  qkv is a call of cuBLASLt, which neighbours can join only as a gemv of at most 8 "
              "tokens\n"));
  CHECK(
      holds(answer("llama-2-7b.json", "l0.k_append", "l0.attn", {"--phase", "prefill"}),
            "  l0.attn is a kernel of the family tiled_attention, which would have to open a port "
            "for it\n"));
  // With fast numerics a call holds a residual, and is still a call.
  CHECK(holds(answer("pre_ln_block.sir", "res1", "norm2", {"--numerics", "fast"}),
              "  attn_out is a call of cuBLASLt, which neighbours"));
}

TEST_CASE("what is slower as one kernel: both times, and a size at which it is not") {
  const std::string slower = answer("two_experts.sir", "weights", "part0");
  CHECK(holds(slower, "(profit.slower)\n  77.60 µs together, 5.97 µs apart\n"));
  CHECK(holds(slower, "  one kernel would have to be as fast; part0 fuses with mixed"));
}

TEST_CASE("every refusal of the samples says what would have to change") {
  size_t refusals = 0;
  for (const char* model : {"llama-2-7b.json", "pre_ln_block.sir", "post_ln_block.sir",
                            "attention_cache.sir", "two_experts.sir", "glu_mlp.sir"}) {
    const ProgramRun run = run_program({"explain", kSamples + model, "--json"});
    REQUIRE_MESSAGE(run.code == 0, run.err);
    const auto ledger = nlohmann::json::parse(run.out);
    for (const auto& entry : ledger["entries"])
      for (const auto& decision : entry["decisions"]) {
        if (decision["fused"]) continue;
        CHECK(!decision["change"].get<std::string>().empty());
        ++refusals;
      }
  }
  CHECK(refusals > 1000);
}

TEST_CASE("a fused pair says what it saves, when it merged and with whom") {
  const std::string pair = answer("llama-2-7b.json", "%l0.q_rot", "%l0.k_rot");
  CHECK(holds(pair, "prefill: l0.q_rot and l0.k_rot share a kernel: launch 3, rope_append_"));
  CHECK(holds(pair, "  fusion 33 of 198 brought them together; it saves 131 KB\n"));
  CHECK(holds(pair, "  fusion 66 of 327 brought them together, with l0.qkv; it saves 8.45 KB\n"));
}

}  // namespace
}  // namespace sinter::change_test
