// The texts and the JSON of `explain` and `inspect`, for every golden model.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/program.h"
#include "runtime/temporary_directory.h"

namespace sinter::explain_test {
namespace {

struct GoldenModel {
  std::string name;
  bool parallel = false;  // one residual a layer, called res
};
const GoldenModel kGoldenModels[] = {{"gpt2"},
                                     {"gpt_neox_parallel", true},
                                     {"gpt_neox_sequential"},
                                     {"llama"},
                                     {"llama3_gqa_scaled_rope"}};

std::string folder_of(const GoldenModel& model) { return SINTER_TESTS_DIR "/golden/" + model.name; }

nlohmann::json json_of(const std::vector<std::string>& arguments) {
  const ProgramRun run = run_program(arguments);
  REQUIRE_MESSAGE(run.code == 0, run.err);
  CHECK(run.err == "");
  return nlohmann::json::parse(run.out);
}

/// The answer to `--why --json` of the one entry that it is about.
nlohmann::json answer_of(const std::vector<std::string>& arguments) {
  const auto answers = json_of(arguments)["answers"];
  REQUIRE(answers.size() == 1);
  return answers[0];
}

/// By all steps of an entry of the ledger.
int64_t moved_bytes(const nlohmann::json& entry) {
  int64_t bytes = 0;
  for (const auto& step : entry["kernels"])
    bytes += step["read_bytes"].get<int64_t>() + step["written_bytes"].get<int64_t>();
  return bytes;
}

TEST_CASE("attention stands between a norm and the residual after it") {
  for (const GoldenModel& model : kGoldenModels) {
    CAPTURE(model.name);
    const std::string residual = model.parallel ? "l0.res" : "l0.res1";
    for (const char* phase : {"prefill", "decode"}) {
      CAPTURE(phase);
      const auto why = answer_of(
          {"explain", folder_of(model), "--phase", phase, "--json", "--why", "l0.norm1", residual});
      CHECK(why["same_kernel"] == false);
      CHECK(why["reason"] == "convexity.path");
      CHECK(why["entry"] == phase);
      CHECK(why["change"].get<std::string>().starts_with("no kernel can hold both while l0.attn"));
      CHECK(why["kernels"].size() == 2);
      CHECK(why["kernels"][0] != why["kernels"][1]);
      const auto path = why["path"].get<std::vector<std::string>>();
      CHECK(path.front() == "l0.norm1");
      CHECK(path.back() == residual);
      size_t at = 0;  // in this order
      for (const char* value : {"l0.qkv", "l0.attn", "l0.attn_out"}) {
        CAPTURE(value);
        while (at < path.size() && path[at] != value) ++at;
        CHECK(at < path.size());
      }
    }
    const ProgramRun text =
        run_program({"explain", folder_of(model), "--why", "l0.norm1", residual});
    CAPTURE(text.out);
    CHECK(text.out.find("do not share a kernel") != std::string::npos);
    CHECK(text.out.find("l0.norm1 → l0.qkv → ") != std::string::npos);
    CHECK(text.out.find(" → l0.attn → ") != std::string::npos);
    CHECK(text.out.find(" → l0.attn_out → ") != std::string::npos);
  }
}

TEST_CASE("a residual and the norm after it share a kernel") {
  for (const GoldenModel& model : kGoldenModels) {
    CAPTURE(model.name);
    const std::vector<std::string> question = {"explain", folder_of(model), "--why",
                                               model.parallel ? "l0.res" : "l0.res1",
                                               model.parallel ? "l1.norm1" : "l0.norm2"};
    CHECK(run_program(question).out.find("share a kernel: launch") != std::string::npos);
    std::vector<std::string> as_json = question;
    as_json.insert(as_json.end(), {"--json", "--phase", "prefill"});
    const auto why = answer_of(as_json);
    CHECK(why["same_kernel"] == true);
    CHECK(why["reason"] == "fused");
    CHECK(why["kernels"][0] == why["kernels"][1]);
    CHECK(why["saved_bytes"] > 0);
    CHECK(why["fusion"] > 0);
    as_json.insert(as_json.end(), {"--forbid", question[3] + "," + question[4]});
    CHECK(answer_of(as_json)["reason"] == "constraint.forbidden");
    as_json.push_back("--no-fuse");
    CHECK(answer_of(as_json)["same_kernel"] == false);
  }
}

TEST_CASE("a decode step's products take neighbours along, and say what they cannot take") {
  const auto why = [](const char* a, const char* b) {
    const ProgramRun run =
        run_program({"explain", folder_of({"llama"}), "--phase", "decode", "--why", a, b});
    CHECK(run.code == 0);
    return run.out;
  };
  CHECK(why("l0.norm1", "l0.qkv")
            .find("share a kernel: launch 1, embedding_rms_norm_gemv_rope_append_") !=
        std::string::npos);
  CHECK(why("l0.norm2", "l0.mlp.gate_up")
            .find("the prologue of l0.mlp.gate_up is computed by each of its blocks, at "
                  "most ") != std::string::npos);
  CHECK(why("l0.mlp.gate_up", "l0.mlp.act")
            .find("share a kernel: launch 4, rms_norm_gemv_silu_mul_") != std::string::npos);
  CHECK(why("l0.res1", "l0.norm2")
            .starts_with("decode: l0.res1 and l0.norm2 do not share a kernel: a kernel is built "
                         "around one product "
                         "(anchor.second)\n  l0.attn_out and l0.mlp.gate_up\n"));
  CHECK(why("l0.q_rot", "l0.qkv").find("share a kernel: launch 1, ") != std::string::npos);
  CHECK(run_program(
            {"explain", folder_of({"olmo2"}), "--phase", "decode", "--why", "l1.q_norm", "l1.qkv"})
            .out.starts_with(
                "decode: l1.q_norm and l1.qkv do not share a kernel: the epilogue of a block "
                "has the sums of its "
                "own rows alone (anchor.other_block)\n  l1.q_norm of l1.qkv\n"));
}

TEST_CASE("norms of queries and of keys share a kernel, each in blocks of its own") {
  for (const char* phase : {"prefill", "decode"}) {
    const std::vector<std::string> question = {"explain", folder_of({"qwen3"}), "--phase", phase,
                                               "--why",   "l0.q_norm",          "l0.k_rot"};
    CHECK(run_program(question).out.starts_with(
        std::string(phase) +
        ": l0.q_norm and l0.k_rot share a kernel, each in blocks of its own: launch"));
    std::vector<std::string> as_json = question;
    as_json.push_back("--json");
    const auto why = answer_of(as_json);
    CHECK(why["same_kernel"] == true);
    CHECK(why["reason"] == "fused.horizontal");
    CHECK(why["kernels"][0] == why["kernels"][1]);
  }
}

TEST_CASE("a value that a merged projection holds is resolved to it") {
  const auto why = answer_of(
      {"explain", folder_of({"llama"}), "--phase", "prefill", "--why", "%l0.q", "l0.v", "--json"});
  CHECK(why["same_kernel"] == true);
  CHECK(why["notes"][0] == "l0.q is a way of reading l0.qkv");
}

TEST_CASE("the whole ledger, as text, JSON, page and graph") {
  const TemporaryDirectory place;
  const std::string llama = folder_of({"llama"});
  const ProgramRun text = run_program({"explain", SINTER_SAMPLES_DIR "/llama-2-7b.json"});
  CHECK(text.out.find("layers 1–30: as layer 0\n") != std::string::npos);
  CHECK(text.out.find("(convexity.path)") != std::string::npos);
  CHECK(std::count(text.out.begin(), text.out.end(), '\n') < 160);
  for (const char* entry : {"\nprefill, N=512", "\ndecode, B=1", "\nsample, B=1"})
    CHECK(text.out.find(entry) != std::string::npos);

  const ProgramRun grouped = run_program({"explain", SINTER_SAMPLES_DIR "/llama-3.2-1b.json"});
  CHECK(grouped.out.find("layers 1–14: as layer 0\n") != std::string::npos);

  const auto json = json_of({"explain", llama, "--json"});
  CHECK(json["entries"].size() == 3);
  size_t refused = 0;
  for (const auto& decision : json["entries"][0]["decisions"])
    refused += decision["fused"] == false;
  CHECK(refused > 0);
  CHECK(refused < json["entries"][0]["decisions"].size());

  const std::string page = place.path() + "/ledger.html", graph = place.path() + "/ledger.dot";
  REQUIRE(run_program({"explain", llama, "--html", page, "--dot", graph}).code == 0);
  CHECK(read_whole(page).find("l0.attn_out") != std::string::npos);
  CHECK(read_whole(graph).starts_with("digraph"));
}

TEST_CASE("a question is answered for every entry that has both values") {
  const std::string llama = folder_of({"llama"});
  const ProgramRun both = run_program({"explain", llama, "--why", "l0.norm1", "l0.res1"});
  CHECK(both.out.find("prefill: l0.norm1 and l0.res1 do not share") == 0);
  CHECK(both.out.find("\ndecode: l0.norm1 and l0.res1 do not share") != std::string::npos);
  CHECK(json_of({"explain", llama, "--why", "l0.norm1", "l0.res1", "--json"})["answers"].size() ==
        2);
  CHECK(run_program({"explain", llama, "--why", "next.tokens", "next.step"})
            .out.starts_with("sample: "));
  const ProgramRun unknown = run_program({"explain", llama, "--why", "l0.norm1", "l0.norm9"});
  CHECK(unknown.code == 2);
  CHECK(
      unknown.err.find("no value or module is called \"l0.norm9\"; near it: l0.norm1, l0.norm2") !=
      std::string::npos);
  const ProgramRun apart =
      run_program({"explain", llama, "--why", "final_norm.wanted", "next.step"});
  CHECK(apart.code == 2);
  CHECK(apart.err.find("no entry has both") != std::string::npos);
}

TEST_CASE("between values that others part, the path is told with its kernels and first refusal") {
  struct Expected {
    const char *phase, *between, *product, *reason, *refusal;
  };
  const Expected all[] = {
      {"prefill", "l0.q_rot", "  l0.qkv: launch 1, gemm\n", "port.closed",
       "  first on the path, l0.norm1 and l0.qkv do not share a kernel: a library call: its inputs "
       "and outputs go through memory (port.closed): l0.qkv\n"},
      {"decode", "l0.q_rot", "  l0.qkv: launch 1, embedding_rms_norm_gemv_rope_append_",
       "anchor.second",
       "  first on the path, l0.q_rot and l0.attn do not share a kernel: a kernel is built around "
       "one product (anchor.second): l0.qkv and l0.attn\n"}};
  const std::string llama = folder_of({"llama"});
  for (const Expected& expected : all) {
    std::vector<std::string> question = {"explain", llama,      "--phase", expected.phase,
                                         "--why",   "l0.norm1", "l0.attn"};
    const std::string text = run_program(question).out;
    CAPTURE(text);
    CHECK(text.find(fmt::format("  l0.norm1 → l0.qkv → {} → l0.attn\n", expected.between)) !=
          std::string::npos);
    CHECK(text.find(expected.product) != std::string::npos);
    CHECK(text.find(expected.refusal) != std::string::npos);
    question.push_back("--json");
    const auto why = answer_of(question);
    const auto path = why["path"].get<std::vector<std::string>>();
    CHECK(path == std::vector<std::string>{"l0.norm1", "l0.qkv", expected.between, "l0.attn"});
    CHECK(why["path_steps"].size() == path.size());
    CHECK(why["path_kernels"][0] == why["kernels"][0]);
    CHECK(why["path_kernels"][3] == why["kernels"][1]);
    CHECK(why["first_refusal"]["reason"] == expected.reason);
  }
  // Neighbours have nothing between them.
  const auto neighbours =
      answer_of({"explain", llama, "--phase", "prefill", "--json", "--why", "l0.norm1", "l0.qkv"});
  CHECK(neighbours["path"].empty());
  CHECK(!neighbours.contains("first_refusal"));
}

TEST_CASE("a module's name stands for its last value") {
  const std::string llama = folder_of({"llama"});
  const std::vector<std::string> model = {"explain", llama, "--phase", "prefill"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), model.begin(), model.end());
    return run_program(more);
  };
  const ProgramRun run = with({"--why", "l0.mlp", "%l0"});
  CHECK(run.out.starts_with("prefill: l0.mlp.down and l0.res2 do not share a kernel: "));
  CHECK(run.out.find("  l0.mlp is a module: it stands for its last value, l0.mlp.down\n") !=
        std::string::npos);
  CHECK(with({"--require", "l0,l1.norm1"}).code == 0);
  const ProgramRun apart = with({"--require", "l0.mlp,l0"});
  CHECK(apart.code == 3);
  CHECK(apart.err.find("l0.mlp.down and l0.res2 must share a kernel but do not") !=
        std::string::npos);
  CHECK(with({"--forbid", "l0,l1.norm1", "--why", "l0", "l1.norm1"})
            .out.find("(constraint.forbidden)") != std::string::npos);
  const ProgramRun unknown = with({"--why", "l0.mpl", "l0"});
  CHECK(unknown.code == 2);
  CHECK(unknown.err.find("no value or module is called \"l0.mpl\"; near it: l0.mlp") !=
        std::string::npos);
}

TEST_CASE("long paths are told once for layers through which they go in the same way") {
  const ProgramRun run = run_program({"explain", SINTER_SAMPLES_DIR "/llama-2-7b.json", "--phase",
                                      "prefill", "--why", "l0.norm1", "l9.res2"});
  CHECK(run.out.find("(layers 2–9 likewise)") != std::string::npos);
  CHECK(run.out.find("l5.") == std::string::npos);
}

TEST_CASE("sizes change what is stated, not what is decided") {
  const std::string spec = SINTER_SAMPLES_DIR "/llama-2-7b.json";
  const auto ledger = [&](const std::string& size) {
    return json_of(
        {"explain", spec, "--phase", "prefill", "--json", "--symbol", size})["entries"][0];
  };
  const auto few = ledger("N=64"), many = ledger("N=128");
  CHECK(few["kernels"].size() == many["kernels"].size());
  CHECK(few["decisions"].size() == many["decisions"].size());
  CHECK(few["sizes"] == "N=64 M=1 R=1024");
  CHECK(many["saved_bytes"] > few["saved_bytes"]);
  CHECK(many["predicted_s"] > few["predicted_s"]);
}

TEST_CASE("the JSON ledger is complete") {
  const auto ledger = json_of({"explain", folder_of({"llama"}), "--json"});
  CHECK(ledger["format"] == "sinter.ledger");
  CHECK(ledger["version"] == 1);
  CHECK(ledger["command"] == "sinter explain " + folder_of({"llama"}) + " --json");
  CHECK(ledger["target"] == "sm_90a");
  CHECK(ledger["numerics"] == "strict");
  for (const auto& entry : ledger["entries"]) {
    int64_t saved = 0, read = 0, edges = 0, last = 0;
    for (const auto& decision : entry["decisions"]) {
      CHECK(decision.contains("change") == !decision["fused"].get<bool>());
      if (!decision["fused"]) continue;
      CHECK(decision["fusion"] == ++last);
      saved += decision["saved_bytes"].get<int64_t>();
    }
    CHECK(saved == entry["saved_bytes"]);
    for (const auto& kernel : entry["kernels"]) read += kernel["read_bytes"].get<int64_t>();
    for (const auto& edge : entry["edges"]) {
      edges += edge["bytes"].get<int64_t>();
      if (!edge["from"].is_null()) CHECK(edge["from"] < edge["to"]);
    }
    CHECK(read == edges);
    for (const auto& value : entry["values"])
      if (!value["step"].is_null()) CHECK(value["step"] < entry["kernels"].size());
  }
}

TEST_CASE("the graph has the repeating layer once") {
  const TemporaryDirectory place;
  const std::string graph = place.path() + "/graph.dot";
  const std::string model = SINTER_SAMPLES_DIR "/llama-2-7b.json";
  REQUIRE(run_program({"explain", model, "--dot", graph}).code == 0);
  const std::string text = read_whole(graph);
  CHECK(run_program({"explain", model, "--dot", "-"}).out == text);
  CHECK(text.find("layers 1–30: as layer 0") != std::string::npos);
  CHECK(text.find("l0.attn_out") != std::string::npos);
  CHECK(text.find("l5.attn_out") == std::string::npos);
  CHECK(text.size() < 40000);
  // Kernels are clusters with bytes and time, edges lead to them with what they read.
  CHECK(text.find(R"(label="gemm\n117 MB, 73.1 µs";)") != std::string::npos);
  CHECK(text.find(R"([lhead=cluster_0_step8, label="22.5 MB", penwidth=4.00])") !=
        std::string::npos);
  CHECK(text.find("style=dashed, constraint=false") != std::string::npos);
}

TEST_CASE("the ledger says how attention is computed, and why") {
  const std::string spec = SINTER_SAMPLES_DIR "/llama-2-7b.json";
  const std::string tiled = run_program({"explain", spec}).out;
  CHECK(tiled.find("attention: 32 by tiled_attention (many tokens of f16)") != std::string::npos);
  CHECK(
      tiled.find("attention: 32 by decode_attention (at most 8 tokens, or one of each sequence)") !=
      std::string::npos);
  CHECK(run_program({"explain", spec, "--attention", "composed"})
            .out.find("attention: 32 by composed (by --attention composed") != std::string::npos);
  CHECK(run_program({"explain", spec, "--dtype", "fp32"})
            .out.find("attention: 32 by float_attention (many tokens of f32)") !=
        std::string::npos);
  CHECK(run_program({"explain", spec, "--dtype", "fp32", "--attention", "composed"})
            .out.find("attention: 32 by composed (by --attention composed") != std::string::npos);
  const auto entry = json_of({"explain", spec, "--phase", "prefill", "--json"})["entries"][0];
  CHECK(entry["choices"][0]["by"] == "tiled_attention");
  CHECK(entry["choices"][0]["values"].size() == 32);
}

TEST_CASE(
    "where rounded scores keep attention composed, what relaxed attention would save is told") {
  const TemporaryDirectory place;
  const std::string module = place.path() + "/m.sir";
  std::ofstream(module) << R"(module @m {
  symbol N in [16, 4096]
  entry @twice(%q: bf16[2, 4, N, 64], %k: bf16[2, 4, N, 64], %v: bf16[2, 4, N, 64]) -> (%y) {
    %s0 = einsum %q, %k {spec = "bhnd,bhtd->bhnt"} : bf16[2, 4, N, N]
    %sw0 = cast %s0 {dtype = f32}
    %p0 = softmax %sw0
    %w0 = cast %p0 {dtype = bf16}
    %x = einsum %w0, %v {spec = "bhnt,bhtd->bhnd"}
    %s1 = einsum %x, %k {spec = "bhnd,bhtd->bhnt"} : bf16[2, 4, N, N]
    %sw1 = cast %s1 {dtype = f32}
    %p1 = softmax %sw1
    %w1 = cast %p1 {dtype = bf16}
    %y = einsum %w1, %v {spec = "bhnt,bhtd->bhnd"}
  }
  entry @none(%x: bf16[N]) -> (%y) {
    %y = exp %x
  }
}
)";
  const auto entries = [&](const std::string& attention, const std::string& size) {
    return json_of(
        {"explain", module, "--json", "--attention", attention, "--symbol", size})["entries"];
  };
  double last = 0;
  for (const char* size : {"N=1024", "N=4096"}) {
    const auto tiled = entries("tiled", size), relaxed = entries("relaxed", size);
    CHECK(tiled[0]["choices"][0]["values"] == std::vector<std::string>{"x", "y"});
    const auto saved = tiled[0]["relaxed_attention"];
    CHECK(saved["places"] == 2);
    const auto predicted = [](const auto& entry) {
      return entry["predicted_s"].template get<double>();
    };
    CHECK(saved["saved_s"].get<double>() ==
          doctest::Approx(predicted(tiled[0]) - predicted(relaxed[0])));
    CHECK(saved["saved_bytes"] == moved_bytes(tiled[0]) - moved_bytes(relaxed[0]));
    CHECK(saved["saved_bytes"] > last);
    last = saved["saved_bytes"];
    for (const auto& other : {tiled[1], relaxed[0], relaxed[1]})
      CHECK_FALSE(other.contains("relaxed_attention"));
    const std::string text = run_program({"explain", module, "--symbol", size}).out;
    CHECK(text.find("\n  --attention relaxed " + saved["text"].get<std::string>() + "\n") !=
          std::string::npos);
    CHECK(saved["text"].get<std::string>().ends_with(" in 2 places"));
  }
}

TEST_CASE("an entry can be shown alone") {
  const TemporaryDirectory place;
  const std::string page = place.path() + "/p", graph = place.path() + "/g";
  const std::vector<std::string> command = {"explain", folder_of({"llama"}), "--phase", "decode"};
  std::vector<std::string> files = command;
  files.insert(files.end(), {"--html", page, "--dot", graph});
  REQUIRE(run_program(files).code == 0);
  for (const std::string& text : {run_program(command).out, read_whole(page), read_whole(graph)}) {
    CHECK(text.find("decode, B=1") != std::string::npos);
    CHECK(text.find("prefill, N=512") == std::string::npos);
  }
  CHECK(read_whole(page).find("attention_softmax_") == std::string::npos);
}

TEST_CASE("names cannot write into the page or the graph") {
  const TemporaryDirectory place;
  const std::string module = place.path() + "/odd.sir", page = place.path() + "/p",
                    graph = place.path() + "/g";
  write_whole(module, R"(module @m {
  entry @e(%x: f32[8]) -> (%"<b>\"&") {
    %"<b>\"&" = exp %x : f32[8]
  }
}
)");
  const ProgramRun run = run_program({"explain", module, "--html", page, "--dot", graph});
  REQUIRE_MESSAGE(run.code == 0, run.err);
  CHECK(read_whole(page).find("<b>") == std::string::npos);
  CHECK(read_whole(page).find(R"(\u003cb\u003e\"\u0026)") != std::string::npos);
  CHECK(read_whole(graph).find(R"(label="<b>\"&")") != std::string::npos);
}

TEST_CASE("inspect counts parameters and floating-point operations") {
  const auto model = json_of({"inspect", SINTER_SAMPLES_DIR "/llama-2-7b.json", "--json"});
  CHECK(model["parameters"] == 6738415616);
  CHECK(model["weight_bytes"]["f16"] == 2 * 6738415616.0);
  CHECK(model["cache_bytes_per_token"] == 2 * 32 * 4096 * 2);
  const auto& decode = model["entries"][1];
  CHECK(decode["name"] == "decode");
  CHECK(decode["total"]["bound"] == "memory");
  for (const auto& c : decode["classes"]) {
    if (c["class"] == "mlp.down") CHECK(c["flops"] == 32 * 2.0 * 4096 * 11008);
    if (c["class"] == "attention") CHECK(c["flops"] == 32 * 4.0 * 1024 * 4096);
  }
  for (const auto& c : model["entries"][0]["classes"]) {
    if (c["class"] == "mlp.down") {
      CHECK(c["flops"] == 512 * 32 * 2.0 * 4096 * 11008);
      CHECK(c["bound"] == "compute");
    }
    if (c["class"] == "norms") CHECK(c["bound"] == "memory");
  }
  for (const GoldenModel& golden : kGoldenModels) {
    CAPTURE(golden.name);
    const ProgramRun run = run_program({"inspect", folder_of(golden)});
    CHECK(run.code == 0);
    CHECK(run.out.find("parameters") != std::string::npos);
  }
}

TEST_CASE("explain says what kernels read before they wait, with -v and as JSON") {
  const std::vector<std::string> decode = {"explain", folder_of({"llama"}), "--phase", "decode"};
  const auto with = [&](const std::string& option) {
    std::vector<std::string> arguments = decode;
    arguments.push_back(option);
    return run_program(arguments);
  };
  const std::string line = "reads early: first slot l0.k_append l0.v_append\n";
  CHECK(with("-v").out.find(line) != std::string::npos);
  CHECK(with("-v").out.find("triggers after its wait") != std::string::npos);
  CHECK(run_program(decode).out.find("reads early") == std::string::npos);
  const auto ledger = nlohmann::json::parse(with("--json").out);
  size_t early = 0, late_triggers = 0;
  for (const auto& kernel : ledger["entries"][0]["kernels"]) {
    early +=
        kernel["early"] == std::vector<std::string>{"first", "slot", "l0.k_append", "l0.v_append"};
    late_triggers += kernel["triggers_after_wait"] == true;
  }
  CHECK(early == 1);
  CHECK(late_triggers == 1);
}

TEST_CASE("reports say that predicted times are a model's estimates, and for which board") {
  const std::string readme = read_whole(SINTER_SAMPLES_DIR "/../README.md");
  const TemporaryDirectory place;
  size_t targets = 0;
  const auto devices = json_of({"devices", "--json"});
  for (const auto& target : devices["targets"]) {
    const std::string text = run_program({"explain", SINTER_SAMPLES_DIR "/softmax_gelu.sir",
                                          "--arch", target["name"].get<std::string>()})
                                 .out;
    const std::string begin = "\npredicted times: a cost model's estimates for one ";
    const size_t at = text.find(begin);
    REQUIRE_MESSAGE(at != std::string::npos, text);
    const size_t board = at + begin.size();
    const std::string name = text.substr(board, text.find('\n', board) - board);
    CHECK_MESSAGE(readme.find(name) != std::string::npos, name);
    ++targets;
  }
  CHECK(targets >= 7);
  const std::string small = SINTER_SAMPLES_DIR "/small-llama";
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"compile", small, "-o", place.path() + "/plan"},
        {"inspect", small}})
    CHECK(run_program(command).out.find("predicted times: a cost model's estimates for one H200") !=
          std::string::npos);
}

TEST_CASE("the page lists what would pay in the order of the text") {
  const TemporaryDirectory place;
  const std::string page = place.path() + "/page.html", model = SINTER_SAMPLES_DIR "/small-llama";
  REQUIRE(run_program({"explain", model, "--html", page}).code == 0);
  const std::string whole = read_whole(page), begin = "id=\"sinter-data\">";
  const size_t at = whole.find(begin) + begin.size();
  const auto data = nlohmann::json::parse(whole.substr(at, whole.find("</script>", at) - at));
  const std::string text = run_program({"explain", model}).out;
  for (const auto& entry : data["entries"]) {
    size_t last = text.find("\n" + entry["headline"].get<std::string>());
    REQUIRE(last != std::string::npos);
    for (const auto& worth : entry["worths"]) {
      if (!worth.value("matters", false)) continue;
      const auto name = [&](const char* which) {
        return entry["values"][worth[which].get<size_t>()][0].get<std::string>();
      };
      last = text.find("×  " + name("a") + " and " + name("b") + ": ", last);
      CHECK_MESSAGE(last != std::string::npos, name("a"));
      if (last == std::string::npos) break;
    }
  }
}

TEST_CASE("two plans side by side") {
  const TemporaryDirectory place;
  const std::string saved = place.path() + "/ledger.json", llama = folder_of({"llama"});
  const auto save = [&](const std::vector<std::string>& arguments) {
    std::ofstream(saved) << run_program(arguments).out;
  };
  // A plan differs from itself in nothing.
  save({"explain", llama, "--json"});
  const auto same = json_of({"explain", llama, "--against", saved, "--json"});
  REQUIRE(same["entries"].size() == 3);
  for (const auto& entry : same["entries"]) {
    CHECK(entry["here"] == entry["there"]);
    CHECK(entry["kernels"].empty());
    CHECK(entry["decisions"].empty());
  }
  // Fast numerics: the kernels' differences add up to the plans' difference.
  const std::vector<std::string> fast = {"explain",    llama,  "--phase",   "prefill",
                                         "--numerics", "fast", "--against", saved};
  auto question = fast;
  question.push_back("--json");
  const auto entry = json_of(question)["entries"][0];
  double difference = 0;
  for (const auto& kernels : entry["kernels"])
    difference += kernels["here_s"].get<double>() - kernels["there_s"].get<double>();
  CHECK(difference != 0);
  CHECK(difference == doctest::Approx(entry["here"]["predicted_s"].get<double>() -
                                      entry["there"]["predicted_s"].get<double>()));
  bool lifted = false;
  for (const auto& decision : entry["decisions"])
    lifted |= decision["a"] == "l*.attn_out" && decision["here"] == "they share a kernel" &&
              decision["there"].get<std::string>().ends_with("(numerics.strict)");
  CHECK(lifted);
  const std::string text = run_program(fast).out;
  for (const char* part :
       {"kernels that differ", "decisions that differ", "l*.attn_out and l*.res1",
        "only fast numerics allow it (numerics.strict)"})
    CHECK_MESSAGE(text.find(part) != std::string::npos, part);
  // Files that are neither ledgers nor measurements.
  for (const char* wrong : {"", "{}", R"({"format":"sinter.ledger","version":2})",
                            R"({"format":"sinter.ledger","version":1,"entries":[{}]})"}) {
    std::ofstream(saved) << wrong;
    for (const std::vector<std::string>& command :
         {std::vector<std::string>{"explain", llama, "--against", saved},
          {"explain", llama, "--measured", saved},
          {"explain", llama, "--board", saved},
          {"bench", llama, "--against", saved},
          {"bisect", llama, "--state", saved, "--output", "", "--device", "cpu"}}) {
      CAPTURE(command[2]);
      const ProgramRun run = run_program(command);
      CHECK(run.code == 4);
      CHECK(run.err.find(saved) != std::string::npos);
      CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
    }
  }
}

}  // namespace
}  // namespace sinter::explain_test
