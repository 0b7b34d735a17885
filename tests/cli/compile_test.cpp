// The folder of a plan: what it holds, that it is deterministic, and what it never replaces.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <thread>

#include "cli/program.h"
#include "runtime/temporary_directory.h"

namespace sinter::compile_test {
namespace {

namespace fs = std::filesystem;

// A residual and its norm: one kernel of each phase's kind is enough to see machine code.
constexpr const char* kCompiled = R"(module @small {
  symbol N in [1, 64]
  weight %w : f32[32] = file {tensor = "w"}
  entry @main(%x: f32[N, 32], %y: f32[N, 32]) -> (%sum, %norm) {
    %sum = add %x, %y : f32[N, 32]
    %norm = rms_norm %sum, %w {eps = 0.5} : f32[N, 32]
  }
}
)";

ProgramRun compile_to(const std::string& model, const std::string& folder,
                      const std::string& cache) {
  return run_program({"compile", model, "-o", folder}, {"SINTER_CACHE_DIR=" + cache});
}

TEST_CASE("two processes with caches of their own write the same bytes") {
  const TemporaryDirectory place;
  const std::string module = place.path() + "/small.sir";
  write_whole(module, kCompiled);
  const ProgramRun first = compile_to(module, place.path() + "/a", place.path() + "/cache1");
  REQUIRE_MESSAGE(first.code == 0, first.err);
  // Elsewhere and at another time, over a plan that is there already.
  REQUIRE(compile_to(module, place.path() + "/b", place.path() + "/cache2").code == 0);
  const ProgramRun again = compile_to(module, place.path() + "/b", place.path() + "/cache2");
  REQUIRE(again.code == 0);
  const auto a = folder_contents(place.path() + "/a"), b = folder_contents(place.path() + "/b");
  CHECK(a == b);
  CHECK(a.size() >= 9);  // plan, ledger, six dumps, a kernel
  for (const auto& [path, content] : a) {
    CAPTURE(path);
    CHECK(!content.empty());
    CHECK(content.find(place.path()) == std::string::npos);
  }
  CHECK(read_whole(place.path() + "/a/ir/00-input.sir").find("rms_norm %sum, %w") !=
        std::string::npos);
  CHECK(first.out.find("2 → 1") != std::string::npos);  // launches
  // Nothing else is left beside the folders.
  size_t beside = 0;
  for (const auto& entry : fs::directory_iterator(place.path())) beside += entry.is_directory();
  const bool nvrtc = first.err.find("stay CUDA text") == std::string::npos;
  CHECK(beside == (nvrtc ? 4 : 2));
  if (nvrtc) CHECK(again.err.find("1 kernel for sm_90a: 1 from the cache") != std::string::npos);
}

TEST_CASE("compile -v tells what each kernel uses, from the cache too") {
  const TemporaryDirectory place;
  const std::string module = place.path() + "/small.sir";
  write_whole(module, kCompiled);
  const auto table = [&](const std::string& folder) {
    const ProgramRun run = run_program({"compile", module, "-v", "-o", place.path() + "/" + folder},
                                       {"SINTER_CACHE_DIR=" + place.path() + "/cache"});
    REQUIRE_MESSAGE(run.code == 0, run.err);
    if (run.err.find("stay CUDA text") != std::string::npos) return std::string();
    const size_t begin = run.err.find("sm_90a  ");
    REQUIRE_MESSAGE(begin != std::string::npos, run.err);
    return run.err.substr(begin);
  };
  const std::string text = table("a");
  if (text.empty()) return;  // no NVRTC
  CHECK(text.find("registers  shared memory  dynamic  spills\n") != std::string::npos);
  std::smatch match;
  REQUIRE(std::regex_search(text, match,
                            std::regex("add_rms_norm_[0-9a-f]+ +([0-9]+) +0 B +0 B +0 B\n")));
  CHECK(std::stoi(match[1]) >= 16);
  CHECK(table("b") == text);
  const ProgramRun quiet = run_program({"compile", module, "-o", place.path() + "/c"},
                                       {"SINTER_CACHE_DIR=" + place.path() + "/cache"});
  CHECK(quiet.err.find("registers") == std::string::npos);
}

TEST_CASE("the ledger of a plan is JSON with kernels and decisions") {
  const TemporaryDirectory place;
  const std::string module = place.path() + "/small.sir";
  write_whole(module, kCompiled);
  REQUIRE(compile_to(module, place.path() + "/plan", place.path() + "/cache").code == 0);
  const auto fusion = nlohmann::json::parse(read_whole(place.path() + "/plan/fusion.json"));
  const auto& entry = fusion["entries"][0];
  CHECK(entry["name"] == "main");
  CHECK(entry["kernels"].size() == 1);
  CHECK(entry["kernels"][0]["kind"] == "kernel");
  CHECK(entry["kernels"][0]["values"] == std::vector<std::string>{"sum", "norm"});
  CHECK(entry["kernels"][0]["read_bytes"] == 2 * 64 * 32 * 4 + 32 * 4);
  CHECK(entry["kernels"][0]["written_bytes"] == 2 * 64 * 32 * 4);
  REQUIRE(entry["decisions"].size() == 1);
  CHECK(entry["decisions"][0]["fused"] == true);
  CHECK(entry["decisions"][0]["a"] == "sum");
  CHECK(entry["decisions"][0]["b"] == "norm");
  CHECK(entry["decisions"][0]["reason"] == "fused");
  const auto plan = nlohmann::json::parse(read_whole(place.path() + "/plan/plan.json"));
  CHECK(fs::exists(place.path() + "/plan/" + plan["kernels"][0]["file"].get<std::string>()));
}

TEST_CASE("a folder that is no plan is left alone") {
  const TemporaryDirectory place;
  const std::string module = place.path() + "/small.sir", target = place.path() + "/mine";
  write_whole(module, kCompiled);
  const auto refused = [&](const std::string& part) {
    const auto before = folder_contents(place.path());
    const ProgramRun run = compile_to(module, target, place.path() + "/cache");
    CAPTURE(run.err);
    CHECK(run.code == 4);
    CHECK(run.out == "");
    CHECK(run.err.find(part) != std::string::npos);
    CHECK(folder_contents(place.path()) == before);
  };
  fs::create_directory(target);
  write_whole(target + "/notes.txt", "mine");
  refused("notes.txt");
  fs::remove(target + "/notes.txt");
  write_whole(target + "/plan.json", "{\"name\": \"another program's\"}");
  refused("no plan.json of Sinter");
  fs::remove(target + "/plan.json");
  REQUIRE(::mkfifo((target + "/plan.json").c_str(), 0600) == 0);
  refused("no plan.json of Sinter");
  fs::remove(target + "/plan.json");
  write_whole(target + "/plan.json", "not JSON");
  refused("no plan.json of Sinter");
  fs::remove_all(target);
  write_whole(target, "a file");
  refused("no folder");
  fs::remove(target);
  fs::create_directory(target);
  CHECK(compile_to(module, target, place.path() + "/cache").code == 0);  // empty: taken
  write_whole(target + "/notes.txt", "mine");
  refused("notes.txt");  // a plan, but not only
  fs::remove(target + "/notes.txt");
  for (const char* name : {"kernels/mine.cu", "kernels/mine.sm_90a.cubin", "kernels/notes.txt",
                           "ir/notes.txt", "ir/mine.sir", "ir/mine/notes", "kernels/mine/a.cu"}) {
    const fs::path path = fs::path(target) / name;
    const bool below = fs::create_directory(path.parent_path());
    write_whole(path.string(), "mine");
    refused(below ? path.parent_path().lexically_relative(target).string() : name);
    if (below)
      fs::remove_all(path.parent_path());
    else
      fs::remove(path);
  }
  fs::create_symlink(module, target + "/ir/00-link.sir");
  refused("ir/00-link.sir");
  fs::remove(target + "/ir/00-link.sir");
  CHECK(compile_to(module, target, place.path() + "/cache").code == 0);
}

TEST_CASE("a plan goes into a folder that exists") {
  const TemporaryDirectory place;
  const std::string path = fs::canonical(place.path()).string(), cache = path + "/cache";
  write_whole(path + "/small.sir", kCompiled);
  const auto refused = [&](const std::string& folder, const std::string& why) {
    const ProgramRun run = compile_to(path + "/small.sir", folder + "/plan", cache);
    CAPTURE(run.err);
    CHECK(run.code == 4);
    CHECK(run.err.find("/plan: " + why) != std::string::npos);
    CHECK_FALSE(fs::exists(cache));  // nothing was compiled before
  };
  refused(path + "/none", "there is no folder '" + path + "/none'; make it first");
  refused(path + "/small.sir", "'" + path + "/small.sir' is no folder");
}

TEST_CASE("folders of compilations that were killed are collected") {
  const TemporaryDirectory place;
  const std::string module = place.path() + "/small.sir", target = place.path() + "/plan";
  write_whole(module, kCompiled);
  // A process that has ended, and one that lives.
  const std::string gone = run_shell("sh -c 'echo -n $$'").out;
  const std::string alive = std::to_string(::getpid());
  const auto folder = [&](const std::string& name) {
    fs::create_directories(place.path() + "/" + name + "/kernels");
    write_whole(place.path() + "/" + name + "/kernels/a.cu", "text");
    return place.path() + "/" + name;
  };
  const std::vector<std::string> left = {folder("plan." + gone + ".0.tmp"),
                                         folder("plan." + gone + ".12.tmp")};
  std::vector<std::string> kept = {folder("plan." + alive + ".0.tmp"),
                                   folder("plan." + gone + ".tmp"),
                                   folder("plan." + gone + ".x.tmp"),
                                   folder("plan.0" + gone + ".0.tmp"),
                                   folder("plan." + gone + ".0.tmp.old"),
                                   folder("plan2." + gone + ".0.tmp"),
                                   folder("plan.v1." + gone + ".0.tmp"),
                                   folder("my.plan." + gone + ".0.tmp"),
                                   folder("plan.0.0.tmp"),
                                   folder("plan.-1.0.tmp")};
  write_whole(place.path() + "/plan." + gone + ".1.tmp", "a file");
  fs::create_directory_symlink(folder("elsewhere"), place.path() + "/plan." + gone + ".2.tmp");
  kept.insert(kept.end(),
              {place.path() + "/plan." + gone + ".1.tmp", place.path() + "/plan." + gone + ".2.tmp",
               place.path() + "/elsewhere/kernels/a.cu"});
  if (::geteuid() == 0) {
    kept.push_back(folder("plan." + gone + ".3.tmp"));
    REQUIRE(::chown(kept.back().c_str(), 1, 1) == 0);  // another user's
  }
  // One that a process elsewhere holds.
  kept.push_back(folder("plan." + gone + ".4.tmp"));
  const int held = ::open(kept.back().c_str(), O_RDONLY | O_DIRECTORY);
  REQUIRE(::flock(held, LOCK_EX) == 0);
  const ProgramRun run = compile_to(module, target, place.path() + "/cache");
  ::close(held);
  CAPTURE(run.err);
  CHECK(run.code == 0);
  for (const std::string& path : left) CHECK_MESSAGE(!fs::exists(path), path);
  for (const std::string& path : kept) CHECK_MESSAGE(fs::exists(fs::symlink_status(path)), path);
}

TEST_CASE("a link to a plan's folder stays a link") {
  const TemporaryDirectory place;
  const std::string module = place.path() + "/small.sir";
  write_whole(module, kCompiled);
  fs::create_directory(place.path() + "/real");
  fs::create_directory_symlink(place.path() + "/real", place.path() + "/link");
  for (int i = 0; i < 2; ++i)
    CHECK(compile_to(module, place.path() + "/link/", place.path() + "/cache").code == 0);
  CHECK(fs::is_symlink(place.path() + "/link"));
  CHECK(fs::exists(place.path() + "/real/plan.json"));
}

TEST_CASE("the program compiles kernels in as many threads as there are processors") {
  const TemporaryDirectory place;
  std::filesystem::copy_file(SINTER_COUNTING_NVRTC, place.path() + "/libnvrtc.so.13");
  constexpr unsigned kKernels = 10;  // fewer than a Llama's plan has
  const unsigned threads = std::min(kKernels, std::max(1U, std::thread::hardware_concurrency()));
  const ProgramRun run = run_program(
      {"compile", SINTER_SAMPLES_DIR "/llama-2-7b.json", "-o", place.path() + "/plan"},
      {"LD_LIBRARY_PATH=" + place.path(), "SINTER_CACHE_DIR=" + place.path() + "/cache",
       "SINTER_TEST_LOG=" + place.path() + "/log", fmt::format("SINTER_TEST_THREADS={}", threads)});
  REQUIRE_MESSAGE(run.code == 0, run.err);
  CHECK(std::stoul(read_whole(place.path() + "/log")) >= threads);
}

}  // namespace
}  // namespace sinter::compile_test
