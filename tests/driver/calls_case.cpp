#include "driver/calls_case.h"

#include "driver/compile/compile.h"
#include "ir/text.h"
#include "runtime/random_inputs.h"
#include "support/result.h"

namespace sinter {
namespace {

constexpr std::string_view kCalled = R"(module @called {
  symbol N in [1, 8]
  symbol M in [1, 200]
  symbol R in [8, 64] step 8
  symbol U in [3, 9]
  weight %table : f32[20, 32] = file {dims = [20, 32], dtype = f32, tensor = "model.table"}
  weight %scale : f32[32] = { %f = file {dims = [32], dtype = f16, tensor = "model.scale"} : f16[32]
    %s = cast %f {dtype = f32} : f32[32]
    return %s
  }
  state %keys : f32[R, 32]
  state %values : f32[R, 32]
  entry @step(%ids: i32[N], %slot: i32[N], %first: i32[N], %x: f32[N, 32]) -> (%y, %x, %table, %k, %y) {
    %e = embedding %table, %ids : f32[N, 32]
    %q = mul %e, %scale : f32[N, 32]
    %k = kv_append %keys, %x, %slot : f32[R, 32]
    %v = kv_append %values, %q, %slot : f32[R, 32]
    %a = attention %q, %k, %v, %first, %slot {order = decode_attention, heads = 2, kv_heads = 2, scale = 1.0, splits = 2} : f32[N, 32]
    %w = concat %a, %x, %a, %x, %a, %x, %a, %x {axis = 1} : f32[N, 256]
    %c = cumulative_sum %w {axis = 0} : f32[N, 256]
    %d = cumulative_sum %c {axis = 1} : f32[N, 256]
    %s = slice %d {axis = 1, begin = 16, size = 32} : f32[N, 32]
    %y = add %s, %x : f32[N, 32]
  }
  entry @wide(%w: f32[M, 32]) -> (%z) {
    %n = neg %w : f32[M, 32]
    %c = cumulative_sum %n {axis = 0} : f32[M, 32]
    %d = cumulative_sum %c {axis = 1} : f32[M, 32]
    %z = add %d, %w : f32[M, 32]
  }
  entry @rows(%ids: i32[N]) -> (%r) {
    %one = constant {value = 1} : i32[]
    %i = add %ids, %one : i32[N]
    %r = embedding %table, %i : f32[N, 32]
  }
}
)";

}  // namespace

std::shared_ptr<const Program> calls_program(bool device_inputs) {
  static std::map<bool, std::shared_ptr<const Program>> made;
  auto& program = made[device_inputs];
  if (program) return program;
  CompileOptions options;
  options.device_inputs = device_inputs;
  Module module = value(parse_module(kCalled, "called.sir"));
  module = value(freeze(std::move(module), {}, {}, {.device_inputs = device_inputs}));
  program = value(compile(std::move(module), options)).program;
  return program;
}

const FakeDriver& fake() {
  static const FakeDriver driver(SINTER_FAKE_DRIVER);
  return driver;
}

CallWeights CallWeights::random() {
  return {value(random_tensor(DType::f32, {20, kCallWidth}, 5)),
          value(random_tensor(DType::f16, {kCallWidth, 2}, 6))};
}

TensorView view_of(const HostTensor& tensor) {
  return {const_cast<std::byte*>(tensor.bytes.data()), tensor.dtype, tensor.dims, {}};
}

TensorView CallWeights::table_view() const { return view_of(table); }

TensorView CallWeights::scale_view() const {
  TensorView view = view_of(strided);
  view.dims = {kCallWidth};
  view.strides = {2};
  return view;
}

CallerMemory::CallerMemory(const HostTensor& tensor)
    : bytes_(std::make_shared<std::vector<std::byte>>(tensor.bytes.size() + 512)) {
  const auto begin = reinterpret_cast<uintptr_t>(bytes_->data());
  data_ = bytes_->data() + (256 - begin % 256);
  std::copy(tensor.bytes.begin(), tensor.bytes.end(), data_);
  type_ = {tensor.dtype, tensor.dims, {}};
}

TensorView CallerMemory::view() const { return {data_, type_.dtype, type_.dims, {}}; }

HostTensor CallerMemory::read() const {
  HostTensor tensor = type_;
  tensor.bytes.assign(data_, data_ + storage_bytes(tensor.dtype, tensor.volume()));
  return tensor;
}

CaseInputs CaseInputs::random(int64_t seed, int64_t tokens) {
  CaseInputs inputs;
  std::vector<int32_t> ids, slot;
  for (int64_t i = 0; i < tokens; ++i) {
    ids.push_back(static_cast<int32_t>((seed * 7 + i * 3) % 20));
    slot.push_back(static_cast<int32_t>((seed + i) % kCallRows));
  }
  inputs.ids = i32_tensor(ids);
  inputs.slot = i32_tensor(slot);
  inputs.first = i32_tensor(std::vector<int32_t>(static_cast<size_t>(tokens), 0));
  inputs.x = value(random_tensor(DType::f32, {tokens, kCallWidth}, seed));
  return inputs;
}

}  // namespace sinter
