// Who owns what on a device, with a driver that counts (fake_driver.cpp).
#include <doctest/doctest.h>

#include "ir/tensor_source.h"
#include "plan/program_builder.h"
#include "runtime/cuda/memory.h"
#include "runtime/cuda/weights.h"
#include "runtime/fake_driver.h"
#include "support/result.h"

namespace sinter::cuda_memory_test {
namespace {

const FakeDriver& driver() {
  static const FakeDriver fake(SINTER_FAKE_DRIVER);
  return fake;
}
size_t handles() { return driver().handles(); }

/// Device 0 of the counting driver, which is what loads as "libcuda.so.1" once it is loaded itself.
CudaDevicePtr device() {
  static const CudaDevicePtr opened = [] {
    driver();
    return value(CudaDevice::open(0));
  }();
  return opened;
}

/// Makes two of a kind and moves them about: at the end all are given back, each once, and what is
/// assigned over is given back at once.
template <typename Make>
void check_owner(Make&& make) {
  const size_t before = handles();
  {
    auto one = make();
    CHECK(handles() == before + 1);
    auto moved = std::move(one);
    CHECK(handles() == before + 1);
    auto other = make();
    CHECK(handles() == before + 2);
    moved = std::move(other);
    moved = decltype(moved)();
    one = std::move(moved);
    other = make();
    CHECK(handles() == before + 1);
  }
  CHECK(handles() == before);
  auto last = make();
  last = decltype(last)();
  CHECK(handles() == before);
}

TEST_CASE("every handle is given back once, by its last owner") {
  const CudaDevicePtr on = device();
  const CudaStream stream = value(CudaStream::create(on));
  check_owner([&] { return value(CudaMemory::allocate(on, 100, "a test")); });
  check_owner([&] { return value(PinnedMemory::allocate(on, 100)); });
  check_owner([&] { return value(CudaStream::create(on)); });
  check_owner([&] { return value(CudaEvent::create(on)); });
  check_owner([&] { return value(CudaLibrary::load(on, "code", "kernel")); });
  check_owner([&] { return value(CudaGraph::record(stream, [] { return Status(); })); });
}

TEST_CASE("what fails leaves nothing behind and says what it was") {
  const CudaDevicePtr on = device();
  const CudaStream stream = value(CudaStream::create(on));
  const size_t before = handles();
  const auto large = CudaMemory::allocate(on, size_t{5} << 30, "the arena");
  REQUIRE_FALSE(large);
  CHECK(
      large.error().message() ==
      "device 0 (Fake GPU 0): no device memory for the arena: 5368.7 MB wanted, 1073.7 MB of "
      "1073.7 MB free; use a smaller model, batch or context, or end other programs on the device");
  const auto library = CudaLibrary::load(on, "", "k");
  REQUIRE_FALSE(library);
  CHECK(library.error().message() ==
        "kernel k, device 0 (Fake GPU 0): cuLibraryLoadData: FAKE_ERROR (1): made up");
  // The driver's error for machine code that is newer than the driver.
  driver().fail("cuLibraryLoadData", 0, 222);
  const auto newer = CudaLibrary::load(on, "code", "k");
  driver().fail("", 0, 0);
  REQUIRE_FALSE(newer);
  CHECK(newer.error().code == ExitCode::device);
  CHECK(newer.error().what ==
        "cuLibraryLoadData: CUDA_ERROR_UNSUPPORTED_PTX_VERSION (222): made up");
  CHECK(newer.error().hint.starts_with("the driver is of CUDA 13.0: "));
  const auto graph = CudaGraph::record(stream, []() -> Status { return fail("not recorded"); });
  REQUIRE_FALSE(graph);
  CHECK(graph.error().message() == "not recorded");
  CHECK(handles() == before);
  CHECK(value(CudaMemory::allocate(on, 0, "nothing")).address() == 0);
}

TEST_CASE("what lives on a device is copied and timed there") {
  const CudaStream stream = value(CudaStream::create(device()));
  CHECK(stream.device() == device());
  const CudaMemory memory = value(CudaMemory::allocate(device(), 8, "a test"));
  CHECK(memory.bytes() == 8);
  const std::byte given[] = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
  std::byte got[8] = {};
  CHECK(stream.fill(memory.address(), 7, 8));
  CHECK(stream.copy_to_device(memory.address(), given));
  CHECK(stream.copy_on_device(memory.address() + 6, memory.address() + 1, 2));
  CHECK(stream.copy_to_host(got, memory.address()));
  CHECK(stream.synchronize("a test"));
  const int expected[] = {1, 2, 3, 4, 7, 7, 2, 3};
  for (size_t i = 0; i < 8; ++i) CHECK(static_cast<int>(got[i]) == expected[i]);
  const CudaEvent begin = value(CudaEvent::create(device())),
                  end = value(CudaEvent::create(device()));
  CHECK(begin.record(stream));
  CHECK(end.wait());
  CHECK(value(end.seconds_since(begin)) == 2e-3);
}

/// A program with weights of these lengths, each counting from its number.
Program counting_weights(llvm::ArrayRef<int64_t> lengths) {
  test::ProgramBuilder builder;
  for (int64_t length : lengths)
    builder.weight(fmt::format("w{}", builder.program.weights.size()), {DType::i32, {length}},
                   [&](Builder& body) {
                     Attributes attributes;
                     attributes.set(AttrName::axis, int64_t{0});
                     attributes.set(AttrName::dims, Dims{length});
                     const ValueId count = body.op(OpKind::iota, {}, attributes);
                     Attributes number;
                     number.set(AttrName::dims, Dims{});
                     number.set(AttrName::dtype, DType::i32);
                     number.set(AttrName::value,
                                static_cast<double>(builder.program.weights.size()));
                     return body.add(count, body.op(OpKind::constant, {}, number));
                   });
  return std::move(builder.program);
}

TEST_CASE("weights arrive through pinned memory of their size, 16 MiB at most") {
  const size_t before = handles();
  for (const std::vector<int64_t>& lengths :
       {std::vector<int64_t>{100, 3, 70}, {5 << 20, 9}, {0}, {}}) {
    CAPTURE(lengths.size());
    const Program program = counting_weights(lengths);
    driver().max_pinned();
    const auto weights = value(CudaWeights::load(device(), program, nullptr));
    size_t payload = 0;
    for (int64_t length : lengths) payload += static_cast<size_t>(length) * sizeof(int32_t);
    CHECK(driver().max_pinned() ==
          (payload == 0 && !lengths.empty() ? 1 : std::min(payload, size_t{16} << 20)));
    for (size_t i = 0; i < lengths.size(); ++i) {
      const auto expected = value(evaluate_weight(program, i, nullptr));
      CHECK(weights->address(i) % kArenaAlignment == 0);
      CHECK(std::equal(expected.bytes.begin(), expected.bytes.end(),
                       reinterpret_cast<const std::byte*>(weights->address(i))));
    }
    CHECK(weights->serves(program));
  }
  CHECK(handles() == before);
}

}  // namespace
}  // namespace sinter::cuda_memory_test
