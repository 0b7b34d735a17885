// No form of a gemv's pipeline changes a bit, whatever the number of tokens: of one token the
// pipelines stream whole rows, of several of a two-byte type tiles that warps share.
#include <doctest/doctest.h>

#include "driver/small_models.h"
#include "ir/text.h"
#include "kernels/gemv/schedule.h"
#include "runtime/random_inputs.h"

namespace sinter {
namespace {

// Rows of no whole number of stages, some of which have no split of a row for the last warps.
constexpr std::string_view kModule = R"(module @mlp {
  symbol N in [1, 8]
  weight %up : T[4616, 2312] = { %i = iota {axis = 0} : i32[4616, 2312]
    %j = iota {axis = 1} : i32[4616, 2312]
    %k = mul %i, %j : i32[4616, 2312]
    %f = cast %k : f32[4616, 2312]
    %s = sin %f : f32[4616, 2312]
    %t = cast %s : T[4616, 2312]
    return %t
  }
  weight %down : T[2312, 4616] = { %i = iota {axis = 0} : i32[2312, 4616]
    %j = iota {axis = 1} : i32[2312, 4616]
    %k = mul %i, %j : i32[2312, 4616]
    %f = cast %k : f32[2312, 4616]
    %s = cos %f : f32[2312, 4616]
    %t = cast %s : T[2312, 4616]
    return %t
  }
  entry @run(%x: T[N, 2312]) -> (%y) {
    %h = softmax %x : T[N, 2312]
    %u = linear %h, %up : T[N, 4616]
    %a = silu %u : T[N, 4616]
    %d = linear %a, %down : T[N, 2312]
    %y = add %x, %d : T[N, 2312]
  }
}
)";

Model model_of(DType dtype) {
  std::string text;
  for (size_t i = 0; i < kModule.size(); ++i)
    text +=
        kModule.substr(i, 2) == "T[" ? std::string(to_string(dtype)) : std::string(1, kModule[i]);
  return {.spec = {},
          .module = value(parse_module(text, "mlp.sir")),
          .tensors = nullptr,
          .origin = "mlp"};
}

std::vector<std::vector<std::byte>> run_all(const Executable& model, DType dtype) {
  std::vector<std::vector<std::byte>> results;
  for (int64_t tokens = 1; tokens <= 8; ++tokens) {
    const HostTensor x = value(random_tensor(dtype, {tokens, 2312}, 7));
    const auto session = value(model.new_session({tokens}));
    results.push_back(value(session->run("run", {tokens}, {&x})).outputs[0].bytes);
  }
  return results;
}

TEST_CASE("no form of a pipeline changes a bit") {
  const auto backend = value(Backend::open({.device = "cuda", .record = {}, .progress = {}}));
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    CAPTURE(to_string(dtype));
    const Model model = model_of(dtype);
    const ReadyPlan usual = value(make_ready(model, {}, *backend));
    std::vector<GemvProduct> products;
    for (const Kernel& kernel : usual.compiled.program->kernels)
      for (const Op& op : kernel.group.ops())
        if (order_of(op) == Order::gemv)
          products.push_back(gemv_product(kernel.group, op, usual.compiled.module.symbols));
    REQUIRE(products.size() == 2);
    const auto expected = run_all(*usual.executable, dtype);
    const DeviceDescription device = value(find_device(usual.compiled.program->target));
    size_t most = 1;
    for (size_t i = 1; i < most || i == 1; ++i) {
      TunedForms recorded;
      for (const GemvProduct& product : products) {
        const auto forms = gemv_form_candidates(product, device);
        if (forms.empty()) return;  // a device without pipelines
        most = std::max(most, forms.size());
        recorded["gemv"][product.key()] = to_form(forms[i % forms.size()]);
      }
      CAPTURE(i);
      backend->add_forms(recorded);
      const ReadyPlan other = value(make_ready(model, {}, *backend));
      CHECK(run_all(*other.executable, dtype) == expected);
    }
  }
}

}  // namespace
}  // namespace sinter
