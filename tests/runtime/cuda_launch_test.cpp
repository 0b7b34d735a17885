// How kernels are launched: what a plan asks for reaches the driver (fake_driver.cpp), and a device
// that cannot run a kernel says so when the plan is loaded. Tensor maps that kernels get.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include "device/device.h"
#include "ir/text.h"
#include "runtime/cuda/executable.h"
#include "runtime/cuda/launch.h"
#include "runtime/cuda/tensor_map.h"
#include "runtime/fake_driver.h"
#include "support/result.h"

namespace sinter::cuda_launch_test {
namespace {

const FakeDriver& driver() {
  static const FakeDriver fake(SINTER_FAKE_DRIVER);
  return fake;
}

/// Device 0 with environment variable `name` of the driver set.
CudaDevicePtr device(const char* name = "SINTER_FAKE_DEVICES", const char* text = "1") {
  driver();
  setenv(name, text, 1);
  auto opened = value(CudaDevice::open(0));
  unsetenv(name);
  return opened;
}

/// A plan with one kernel, which reads and writes one element a block.
std::shared_ptr<Program> one_kernel(const Launch& launch, uint32_t minimum_arch,
                                    bool overlaps = true) {
  auto program = std::make_shared<Program>();
  Kernel kernel;
  kernel.name = "neg_1";
  const ValueId x = kernel.group.add({OpKind::input, {DType::f32, {5}}, {}, {}, "x0"});
  kernel.group.inputs.push_back(x);
  kernel.group.outputs.push_back(kernel.group.add({OpKind::neg, {DType::f32, {5}}, {x}, {}, "v0"}));
  kernel.launch = launch;
  kernel.minimum_arch = minimum_arch;
  kernel.overlap.waits = overlaps;
  program->kernels.push_back(kernel);
  EntryPlan entry;
  entry.name = "main";
  Buffer in, out;
  in.value = "x", out.value = "y";
  in.type = out.type = {DType::f32, {5}};
  in.size_bytes = out.size_bytes = 20;
  in.place = Buffer::Place::input;
  entry.buffers = {in, out};
  entry.inputs = {0};
  entry.outputs = {1};
  entry.output_names = {"y"};
  entry.steps.push_back({KernelStep{0, {0}, {1}}, {"y"}});
  program->entries.push_back(entry);
  return program;
}

Result<std::shared_ptr<const CudaExecutable>> load(const std::shared_ptr<Program>& program,
                                                   const CudaDevicePtr& on) {
  SINTER_LET(weights, CudaWeights::load(on, *program, nullptr));
  SINTER_LET(library, CudaLibrary::load(on, "code", "neg_1"));
  SINTER_LET(kernel, library.kernel("neg_1"));
  auto shared = std::make_shared<const CudaLibrary>(std::move(library));
  return CudaExecutable::assemble(program, on, nullptr, std::move(weights), {shared}, {kernel});
}

Launch wide_launch() {
  Launch launch;
  launch.rows = 5;
  launch.threads = 96;
  launch.shared_bytes = 227 * 1024;
  launch.cluster = 4;
  return launch;
}

/// The one launch of a call.
FakeLaunch launched(const std::shared_ptr<Program>& program, const CudaDevicePtr& on) {
  const auto model = value(load(program, on));
  const auto made = value(model->new_session({}));
  const auto& session = *made->on_cuda();
  const CudaCall call = value(session.place("main", {}, {CudaAddress{256}}, 256));
  driver().take_launches();
  REQUIRE(session.enqueue(call, session.stream()));
  REQUIRE(session.stream().synchronize("a test"));
  const auto launches = driver().take_launches();
  REQUIRE(launches.size() == 1);
  return launches[0];
}

TEST_CASE("the architecture of a GPU is the name of a device description") {
  const std::array<const char*, 3> kGpus[] = {{"8", "0", "sm_80"},   {"8", "6", "sm_86"},
                                              {"8", "9", "sm_89"},   {"9", "0", "sm_90a"},
                                              {"10", "0", "sm_100"}, {"12", "0", "sm_120"}};
  for (const auto& [major, minor, name] : kGpus) {
    setenv("SINTER_FAKE_MINOR", minor, 1);
    const std::string arch = device("SINTER_FAKE_MAJOR", major)->arch();
    unsetenv("SINTER_FAKE_MINOR");
    CHECK(arch == name);
    CHECK(find_device(arch).has_value());
  }
}

TEST_CASE("a plan's clusters and dynamic shared memory reach the driver") {
  const FakeLaunch launch = launched(one_kernel(wide_launch(), 90), device());
  CHECK(launch.grid[0] == 20);  // 5 rows, a cluster each
  CHECK(launch.block[0] == 96);
  CHECK(launch.shared_bytes == 227 * 1024);
  CHECK(launch.cluster == 4);
  Launch alone = wide_launch();
  alone.items_without_clusters = 5;
  const FakeLaunch without = launched(one_kernel(alone, 90), device());
  CHECK(without.grid[0] == 5);
  CHECK(without.cluster == 1);
  CHECK(launch.overlaps);
}

TEST_CASE("kernels overlap from compute capability 9.0 on, and without clusters too") {
  Launch small;
  small.rows = 5;
  const FakeLaunch launch = launched(one_kernel(small, 70), device());
  CHECK(launch.grid[0] == 5);
  CHECK(launch.cluster == 1);
  CHECK(launch.overlaps);
  CHECK_FALSE(launched(one_kernel(small, 70), device("SINTER_FAKE_MAJOR", "8")).overlaps);
  // Neither does a kernel that does not wait, of a plan or another.
  CHECK_FALSE(launched(one_kernel(small, 70, false), device()).overlaps);
  const CudaDevicePtr on = device();
  const CudaStream stream = value(CudaStream::create(on));
  const CudaLibrary library = value(CudaLibrary::load(on, "code", "k"));
  REQUIRE(sinter::launch({.kernel = value(library.kernel("k")), .name = "k"}, nullptr, stream));
  REQUIRE(stream.synchronize("a test"));
  CHECK_FALSE(driver().take_launches().at(0).overlaps);
}

TEST_CASE(
    "a device that is too old for a kernel, or has too little shared memory, refuses a plan") {
  const auto refused = [](const CudaDevicePtr& on) {
    const auto model = load(one_kernel(wide_launch(), 90), on);
    REQUIRE_FALSE(model);
    CHECK(model.error().code == ExitCode::device);
    return model.error().message();
  };
  CHECK(refused(device("SINTER_FAKE_MAJOR", "8")) ==
        "device 0 (Fake GPU 0): kernel neg_1 needs compute capability 9.0, the device has 8.9; "
        "compile the plan for this device");
  CHECK(refused(device("SINTER_FAKE_SHARED", "166912")) ==
        "device 0 (Fake GPU 0): kernel neg_1 needs 232448 bytes of shared memory a block, the "
        "device has 166912; compile the plan for this device");
}

TEST_CASE("a tensor map of no rows is all zeros, since the driver encodes none") {
  const auto on = device();
  TensorMap map{
      .offset = {}, .dims = {64, SymExpr(Dim(SymbolId{0}))}, .strides = {64}, .box = {64, 8}};
  const auto encodings = [&](int64_t rows) {
    driver().take_calls();
    const auto encoded = encode(map, DType::f16, 256, {rows}, *on);
    REQUIRE(encoded.has_value());
    const auto calls = driver().take_calls();
    return std::count_if(calls.begin(), calls.end(), [](const FakeCall& call) {
      return std::string_view(call.name) == "cuTensorMapEncodeTiled";
    });
  };
  CHECK(encodings(3) == 1);
  CHECK(encodings(0) == 0);
}

TEST_CASE("a call of a session that comes again is recorded, and then launched as a graph") {
  const auto on = device();
  Launch small;
  small.rows = 5;
  const auto model = value(load(one_kernel(small, 70), on));
  auto session = value(CudaSession::create(model, {}));
  const HostTensor x = value(make_tensor(DType::f32, {5}));
  // Calls of the driver that make a graph and launch it.
  const auto graphs = [&] {
    driver().take_calls();
    driver().take_launches();
    REQUIRE(session->run("main", {}, {&x}));
    CHECK(driver().take_launches().size() == 1);
    const auto calls = driver().take_calls();
    const auto count = [&](std::string_view name) {
      return std::count_if(calls.begin(), calls.end(),
                           [&](const FakeCall& call) { return call.name == name; });
    };
    return std::pair(count("cuGraphInstantiateWithFlags"), count("cuGraphLaunch"));
  };
  using Counts = std::pair<std::ptrdiff_t, std::ptrdiff_t>;
  CHECK(graphs() == Counts(0, 0));
  CHECK(graphs() == Counts(1, 1));
  CHECK(graphs() == Counts(0, 1));
  session->free_arena();  // the graph's addresses are gone
  CHECK(graphs() == Counts(0, 0));
  CHECK(graphs() == Counts(1, 1));
}

}  // namespace
}  // namespace sinter::cuda_launch_test
