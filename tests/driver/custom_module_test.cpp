// Modules with callers' ops: verified on the host, stored as plans, checked on a device that is
// played.
#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>

#include "cli/program.h"
#include "driver/host_kernels.h"
#include "driver/plan_folder/write.h"
#include "driver/run/run.h"
#include "driver/verify/report.h"
#include "driver/verify/verify.h"
#include "ir/text.h"
#include "runtime/host/executable.h"
#include "support/custom_ops.h"
#include "support/result.h"

namespace sinter::custom_module_test {
namespace {

constexpr const char* kModule = R"(module @m {
  symbol N in [1, 64]
  weight %w : TYPE[96] = constant {value = 0.75}
  entry @f(%x: TYPE[N, 96], %r: TYPE[N, 96]) -> (%sum, %s, %p) {
    %sum = add %x, %r : TYPE[N, 96]
    %y = custom %sum, %w {op = "OP", numbers = [0x1p-20]} : TYPE[N, 96]
    %s = silu %y : TYPE[N, 96]
    %t = custom %s {op = "test.rotate"} : TYPE[N, 96]
    %p = softmax %t : TYPE[N, 96]
  }
}
)";

std::string module_text(std::string_view type, std::string_view op) {
  std::string text = kModule;
  for (const auto& [from, to] :
       {std::pair<std::string_view, std::string_view>{"TYPE", type}, {"OP", op}})
    for (size_t at; (at = text.find(from)) != text.npos;) text.replace(at, from.size(), to);
  return text;
}

TEST_CASE("a module with callers' ops is verified: fused, unfused and float64") {
  test::register_custom_ops();
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/m.sir";
  for (const char* op : {"test.rms_norm", "test.loose_norm"})
    for (const char* type : {"f32", "f16", "bf16"}) {
      CAPTURE(op);
      CAPTURE(type);
      write_whole(path, module_text(type, op));
      VerifyOptions options;
      options.backend = value(Backend::open({.device = "cpu", .record = {}, .progress = {}}));
      for (const Numerics numerics : {Numerics::strict, Numerics::fast}) {
        options.compile.fusion.numerics = numerics;
        const VerifyReport report = value(verify_model(path, options));
        CHECK_MESSAGE(report.passed(), verify_text(report));
        REQUIRE(report.dtypes.size() == 1);
        // norm with its sum and silu; rotate; softmax.
        CHECK(report.dtypes[0].fused_launches * 5 == report.dtypes[0].unfused_launches * 3);
        if (numerics == Numerics::fast) continue;
        REQUIRE(report.dtypes[0].fused_error);
        CHECK(report.dtypes[0].fused_error->max < (std::string_view(type) == "f32" ? 1e-5 : 0.1));
      }
    }
}

TEST_CASE("a plan with callers' ops runs where they are registered, else it names the op") {
  test::register_custom_ops();
  const TemporaryDirectory place;
  const std::string path = place.path() + "/m.sir", folder = place.path() + "/plan";
  write_whole(path, module_text("f16", "test.rms_norm"));
  BuildRequest request;
  request.path = path;
  request.for_folder = true;
  const Built built = value(build(request));
  require(write_plan_folder(folder, {built, {}, {}, "", {}, false}));
  VerifyOptions options;
  options.backend = value(Backend::open({.device = "cpu", .record = {}, .progress = {}}));
  const VerifyReport report = value(verify_model(folder, options));
  CHECK_MESSAGE(report.passed(), verify_text(report));

  for (const std::string& model : {path, folder}) {
    const ProgramRun run = run_program({"run", model, "--random-inputs", "1", "--device", "cpu"});
    CAPTURE(run.err);
    CHECK(run.code == 4);
    CHECK(run.err.find("no op is registered under the name \"test.rms_norm\" (C23); register it in "
                       "the program that reads the module") != std::string::npos);
  }
}

/// Added to the elements of test.drift's next evaluation.
std::atomic<float> drift = 0;

void register_drift() {
  CustomOp op;
  op.name = "test.drift";
  op.signature = "x: float[N] -> x[N]";
  op.source =
      "template <typename X, typename Y>\n__device__ void drift(X, Y, const SinterCustom&) {}\n";
  op.function = "drift";
  op.tolerance = 1e-3;
  op.evaluate = [](const CustomOpCall& call) {
    const float shift = drift.exchange(0);
    for (int64_t i = 0; i < call.result_dims[0]; ++i)
      static_cast<float*>(call.result)[i] =
          static_cast<const float*>(call.operands[0].data)[i] + (i == 3 ? shift : 0);
    return true;
  };
  require(register_custom_op(op));
}

TEST_CASE("an inexact op alone in its kernel is checked by its tolerance") {
  static const FakeDriver fake(SINTER_FAKE_DRIVER);
  register_drift();
  Module module = value(parse_module(R"(module @m {
  entry @f(%x: f32[8]) -> (%y) {
    %y = custom %x {op = "test.drift"} : f32[8]
  }
}
)",
                                     "drift.sir"));
  const auto program = value(compile(value(freeze(std::move(module), {})), {})).program;
  const Kernel& kernel = program->kernels.at(0);
  CHECK_FALSE(follows_stated_order(kernel, {}));
  CHECK(host_tolerance(kernel) == 1e-3);
  const auto model = value(load_on_fake(program, nullptr));
  HostTensor x = value(make_tensor(DType::f32, {8}));
  for (int i = 0; i < 8; ++i) x.data<float>()[i] = static_cast<float>(i) - 5;
  const auto run = [&](float shift) -> std::string {
    drift = shift;
    const auto session = value(model->new_session({}));
    const auto result =
        session->run("f", {}, {&x}, {.poison_freed = false, .keep = {}, .check_kernels = true});
    return result ? "" : result.error().message();
  };
  CHECK(run(0) == "");
  CHECK(run(0.004f) == "");  // 1e-3 of the largest magnitude, 5
  const std::string refused = run(0.006f);
  CAPTURE(refused);
  CHECK(refused.find(": 1 elements differ too much from the host's evaluation, element 3 is -2 "
                     "instead of -1.99") != std::string::npos);
  CHECK(refused.find("compare the op's kernel text and its evaluation, or raise its tolerance") !=
        std::string::npos);
}

TEST_CASE("a host evaluation that fails is an error of the run, with the op's name") {
  CustomOp op = test::norm_op("test.fails");
  op.evaluate = [](const CustomOpCall&) { return false; };
  require(register_custom_op(op));
  Module module = value(parse_module(R"(module @m {
  entry @f(%x: f32[2, 8], %w: f32[8]) -> (%y) {
    %y = custom %x, %w {op = "test.fails", numbers = [1]} : f32[2, 8]
  }
}
)",
                                     "fails.sir"));
  const auto program = value(compile(value(freeze(std::move(module), {})), {})).program;
  const auto model =
      std::make_shared<HostExecutable>(value(HostExecutable::load(program, nullptr)));
  const HostTensor x{DType::f32, {2, 8}, std::vector<std::byte>(64)},
      w{DType::f32, {8}, std::vector<std::byte>(32)};
  const auto result = value(model->new_session({}))->run("f", {}, {&x, &w}, {});
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().message().find("the host evaluation of \"test.fails\" failed") !=
        std::string::npos);
}

}  // namespace
}  // namespace sinter::custom_module_test
