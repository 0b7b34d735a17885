// Do cuBLASLt's products without split-K add in ascending order of K with one float32 accumulator,
// whatever their tile? Compares all algorithms that the library proposes for some two hundred
// products, bit for bit, with an own loop of wgmma (product_order_kernels.h); and the kernels of
// tiled_linear.
//
//   product_order [--json FILE]   measure on device 0, of compute capability 9.0
//   product_order --compile      only compile the device code, which needs no device
//
// Exit code: 0 where all could be measured, whatever came out.
#include <algorithm>
#include <bit>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "codegen/lowering/emit.h"
#include "ir/builder.h"
#include "kernels/library.h"
#include "product_order_kernels.h"
#include "runtime/cuda/cublaslt_product.h"
#include "runtime/cuda/kernel_compiler.h"
#include "runtime/cuda/launch.h"
#include "runtime/cuda/tensor_map.h"

namespace sinter {
namespace {

constexpr int64_t kMaxElements = int64_t{11008} * 4096;  // of an operand and of a result
constexpr unsigned kThreads = 256;

struct Shape {
  int64_t m, n, k;
};

/// Linears of transformers at several numbers of tokens, and odd multiples of 8.
std::vector<Shape> shapes() {
  std::vector<Shape> all;
  constexpr std::pair<int64_t, int64_t> kLinears[] = {{4096, 4096}, {11008, 4096}, {4096, 11008},
                                                      {2048, 2048}, {2560, 10240}, {768, 3072}};
  for (const auto& [n, k] : kLinears)
    for (int64_t m : {16, 64, 256, 1000, 2048}) all.push_back({m, n, k});
  all.push_back({4096, 4096, 4096});
  all.push_back({4096, 1024, 8192});
  constexpr Shape kOdd[] = {
      {16, 64, 64},     {24, 72, 88},       {40, 200, 136},    {72, 1000, 520},  {104, 520, 1032},
      {136, 3000, 776}, {264, 88, 4104},    {328, 2056, 2056}, {520, 648, 9000}, {1032, 1544, 328},
      {2056, 264, 72},  {3000, 1048, 1096}, {4096, 72, 10984}};
  all.insert(all.end(), std::begin(kOdd), std::end(kOdd));
  return all;
}

std::string_view element(DType dtype) { return dtype_info(dtype).memory; }

Result<std::string> machine_code(const std::string& arch) {
  SINTER_LET(nvrtc, find_nvrtc());
  const KernelSource source{"product_order", kProductOrderKernels};
  SINTER_LET(compiled,
             compile_cached(nvrtc, KernelCache::of_user(), source, kernel_library(), arch));
  return std::move(compiled.cubins[0].bytes);
}

/// How often products of one kind had the own loop's bits.
struct Tally {
  int64_t equal = 0, unequal = 0;
  int64_t elements = 0;         // with other bits
  float largest = 0;            // difference
  std::vector<std::string> of;  // the unequal products

  void add(const std::string& product, unsigned count, float difference) {
    ++(count == 0 ? equal : unequal);
    elements += count;
    largest = std::max(largest, difference);
    if (count != 0) of.push_back(product);
  }
  nlohmann::ordered_json json() const {
    return {{"products", equal + unequal},
            {"equal", equal},
            {"unequal", unequal},
            {"unequal_elements", elements},
            {"largest_difference", largest},
            {"unequal_products", of}};
  }
};

class Experiment {
 public:
  static Result<Experiment> create() {
    Experiment made;
    SINTER_LET(device, CudaDevice::open(0));
    if (device->arch() != "sm_90a")
      return fail(fmt::format("the device's architecture is {}, the own loop is for sm_90a",
                              device->arch()),
                  device->name(), "use a device of compute capability 9.0", ExitCode::device);
    SINTER_TRY(device->make_current());
    SINTER_LET(code, machine_code(device->arch()));
    SINTER_LET(kernels, CudaLibrary::load(device, code, "product_order"));
    SINTER_LET(library, CublasLt::create());
    SINTER_LET(stream, CudaStream::create(device));
    made.device_ = device;
    made.kernels_ = std::move(kernels);
    made.library_ = std::move(library);
    made.stream_ = std::move(stream);
    SINTER_TRY(made.allocate(made.a_, 2));
    SINTER_TRY(made.allocate(made.b_, 2));
    for (CudaMemory* result : {&made.own_, &made.other_}) SINTER_TRY(made.allocate(*result, 4));
    SINTER_LET(workspace, CudaMemory::allocate(device, kGemmWorkspaceBytes, "products"));
    made.workspace_ = std::move(workspace);
    SINTER_LET(counts, CudaMemory::allocate(device, 2 * sizeof(unsigned), "counts"));
    made.counts_ = std::move(counts);
    return made;
  }

  Status measure() {
    for (DType operands : {DType::bf16, DType::f16})
      for (DType result : {DType::f32, operands}) {
        // An f16 sum of the wide range would be infinite.
        const float high = result == DType::f16 ? 2.0f : 8.0f;
        SINTER_TRY(fill(operands, a_, high, 1));
        SINTER_TRY(fill(operands, b_, high, 2));
        for (const Shape& shape : shapes()) SINTER_TRY(measure(operands, result, shape));
      }
    return {};
  }

  nlohmann::ordered_json json() const {
    nlohmann::ordered_json root = {{"device", device_->name()}, {"library", library_->name()}};
    root["products"] = products_;
    root["without_proposals"] = without_proposals_;
    root["own_tiles"] = own_tiles_.json();
    root["tiled_linear"] = tiled_linear_.json();
    root["unsplit"] = unsplit_.json();
    root["split"] = split_.json();
    for (const auto& [algorithm, tally] : by_algorithm_) {
      nlohmann::ordered_json item;
      for (size_t i = 0; i < algorithm.size(); ++i) item[kAlgorithmFields[i]] = algorithm[i];
      item.update(tally.json());
      root["algorithms"].push_back(std::move(item));
    }
    return root;
  }

  void print() const {
    fmt::print("{}, {}: {} products, {} without proposals\n", device_->name(), library_->name(),
               products_, without_proposals_);
    fmt::print("{:>4} {:>5} {:>6} {:>7} {:>9} {:>6} {:>7} {:>8} {:>6} {:>8} {:>11}\n", "id", "tile",
               "stages", "split_k", "reduction", "inner", "cluster", "compared", "equal", "unequal",
               "difference");
    for (const auto& [a, t] : by_algorithm_)
      fmt::print("{:>4} {:>5} {:>6} {:>7} {:>9} {:>6} {:>7} {:>8} {:>6} {:>8} {:>11.4g}\n", a[0],
                 a[1], a[6], a[2], a[3], a[7], a[8], t.equal + t.unequal, t.equal, t.unequal,
                 t.largest);
    const auto line = [](const char* name, const Tally& t) {
      const int64_t all = t.equal + t.unequal;
      fmt::print("{}: {} of {} equal ({:.1f} %), largest difference {:.4g}\n", name, t.equal, all,
                 all == 0 ? 0.0 : 100.0 * static_cast<double>(t.equal) / static_cast<double>(all),
                 t.largest);
    };
    line("own loop, 64 and 256 columns", own_tiles_);
    line("tiled_linear", tiled_linear_);
    line("library without split-K", unsplit_);
    line("library with split-K", split_);
    for (const auto& [a, t] : by_algorithm_)
      if (a[2] <= 1 && t.unequal != 0)
        fmt::print("unequal without split-K: algorithm {} tile {} stages {} cluster {}: {}\n", a[0],
                   a[1], a[6], a[8], fmt::join(t.of, "; "));
  }

 private:
  Status allocate(CudaMemory& memory, int64_t element_bytes) const {
    SINTER_LET(allocated,
               CudaMemory::allocate(device_, static_cast<size_t>(kMaxElements * element_bytes),
                                    "an operand"));
    memory = std::move(allocated);
    return {};
  }

  Status run(const std::string& name, unsigned blocks, unsigned threads, void** parameters) const {
    SINTER_LET(kernel, kernels_.kernel(name));
    return launch({.kernel = kernel, .name = name, .blocks = blocks, .threads = threads},
                  parameters, stream_);
  }

  Status fill(DType dtype, const CudaMemory& memory, float high, unsigned seed) const {
    CudaAddress out = memory.address();
    long long count = kMaxElements;
    float low = -8;
    void* parameters[] = {&out, &count, &low, &high, &seed};
    return run(fmt::format("fill_{}", element(dtype)), 4096, kThreads, parameters);
  }

  /// Computes the product by the own loop, in tiles of `columns` columns, into `c`.
  Status compute(int columns, DType operands, DType result, const Shape& shape,
                 const CudaMemory& c) const {
    SINTER_TRY(stream_.fill(c.address(), 0xff, c.bytes()));
    CudaAddress a = a_.address(), b = b_.address(), out = c.address();
    int m = static_cast<int>(shape.m), n = static_cast<int>(shape.n), k = static_cast<int>(shape.k);
    void* parameters[] = {&a, &b, &out, &m, &n, &k};
    const auto blocks = static_cast<unsigned>((m + 63) / 64 * ((n + columns - 1) / columns));
    return run(fmt::format("ordered_{}_{}_{}", columns, element(operands), element(result)), blocks,
               128, parameters);
  }

  /// Computes the product by a kernel of tiled_linear into other_.
  Status compute_tiled_linear(DType dtype, DType result, const Shape& shape) const {
    Graph graph;
    for (const auto& [name, rows] : {std::pair("x", shape.m), {"w", shape.n}})
      graph.inputs.push_back(
          graph.add(Op{OpKind::input, {dtype, {Dim(rows), Dim(shape.k)}}, {}, {}, name}));
    graph.outputs.push_back(Builder(graph, {}).op(
        OpKind::linear, graph.inputs,
        Attributes().set(AttrName::order, Order::tiled_linear).set(AttrName::dtype, result), "y"));
    SINTER_LET(kernel, emit_kernel(graph, 1, {}, *find_device(device_->arch())));
    SINTER_LET(nvrtc, find_nvrtc());
    const KernelSource source{kernel.name, kernel.source};
    SINTER_LET(compiled, compile_cached(nvrtc, KernelCache::of_user(), source, kernel_library(),
                                        device_->arch()));
    SINTER_LET(library, CudaLibrary::load(device_, compiled.cubins[0].bytes, kernel.name));
    SINTER_LET(function, library.kernel(kernel.name));
    SINTER_TRY(allow_shared_bytes(function, kernel.name, kernel.launch.shared_bytes, *device_));
    CudaAddress a = a_.address(), b = b_.address(), c = other_.address();
    std::vector<EncodedTensorMap> maps;
    for (const TensorMap& map : kernel.tensor_maps) {
      SINTER_LET(encoded, encode(map, dtype, map.input == 0 ? a : b, {}, *device_));
      maps.push_back(encoded);
    }
    SINTER_TRY(stream_.fill(c, 0xff, other_.bytes()));
    const auto grid = grid_of(kernel.launch, {});
    std::vector<void*> parameters = {&a, &b, &c};
    for (EncodedTensorMap& map : maps) parameters.push_back(&map);
    SINTER_TRY(launch({.kernel = function,
                       .name = kernel.name,
                       .blocks = static_cast<unsigned>(grid->blocks),
                       .threads = static_cast<unsigned>(kernel.launch.threads),
                       .shared_bytes = static_cast<unsigned>(kernel.launch.shared_bytes),
                       .cluster = static_cast<unsigned>(grid->cluster)},
                      parameters.data(), stream_));
    return stream_.synchronize(kernel.name);
  }

  /// A kernel's two counts, which are 0 before it runs.
  Result<std::array<unsigned, 2>> counted(const std::string& name, unsigned blocks,
                                          void** parameters) const {
    SINTER_TRY(stream_.fill(counts_.address(), 0, counts_.bytes()));
    SINTER_TRY(run(name, blocks, kThreads, parameters));
    std::array<unsigned, 2> counts = {};
    SINTER_TRY(stream_.copy_to_host(std::as_writable_bytes(std::span(counts)), counts_.address()));
    SINTER_TRY(stream_.synchronize(name));
    return counts;
  }

  /// An error where the own loop's result is wrong.
  Status check(DType operands, DType result, const Shape& shape, const std::string& product) const {
    CudaAddress a = a_.address(), b = b_.address(), c = own_.address(), counts = counts_.address();
    int m = static_cast<int>(shape.m), n = static_cast<int>(shape.n), k = static_cast<int>(shape.k);
    int every = static_cast<int>(shape.m * shape.n / 4096) | 1;
    float half_ulp = result == DType::f32 ? 0x1p-24f : result == DType::f16 ? 0x1p-11f : 0x1p-8f;
    void* parameters[] = {&a, &b, &c, &m, &n, &k, &every, &half_ulp, &counts};
    const auto samples = static_cast<unsigned>((shape.m * shape.n + every - 1) / every);
    SINTER_LET(wrong, counted(fmt::format("check_{}_{}", element(operands), element(result)),
                              (samples + kThreads - 1) / kThreads, parameters));
    if (wrong[0] == 0) return {};
    return fail(fmt::format("{} of {} elements of the own loop are wrong", wrong[0], samples),
                product, "this is a bug of the program", ExitCode::internal_error);
  }

  /// Compares the results in own_ and other_.
  Status compare(DType result, const Shape& shape, const std::string& product,
                 llvm::ArrayRef<Tally*> tallies) const {
    CudaAddress x = own_.address(), y = other_.address(), counts = counts_.address();
    long long count = shape.m * shape.n;
    void* parameters[] = {&x, &y, &count, &counts};
    SINTER_LET(found, counted(fmt::format("compare_{}", element(result)), 1024, parameters));
    for (Tally* tally : tallies) tally->add(product, found[0], std::bit_cast<float>(found[1]));
    return {};
  }

  Status measure(DType operands, DType result, const Shape& shape) {
    ++products_;
    const std::string product = fmt::format("{}x{}x{} {} to {}", shape.m, shape.n, shape.k,
                                            to_string(operands), to_string(result));
    for (const auto& [columns, memory] : {std::pair(64, &other_), std::pair(256, &own_)})
      SINTER_TRY(compute(columns, operands, result, shape, *memory));
    SINTER_TRY(check(operands, result, shape, product));
    SINTER_TRY(compare(result, shape, product, &own_tiles_));

    SINTER_TRY(compute_tiled_linear(operands, result, shape));
    SINTER_TRY(compare(result, shape, product, &tiled_linear_));

    GemmProblem problem;
    problem.m = shape.m, problem.n = shape.n, problem.k = shape.k;
    problem.a = {operands, shape.k, 1, 0, kMaxAlignment};
    problem.b = {operands, 1, shape.k, 0, kMaxAlignment};
    problem.c = {result, shape.n, 1, 0, kMaxAlignment};
    const std::optional<CublasLtCall> call = cublaslt_call(problem);
    if (!call) return fail("the library has no such product", product);
    SINTER_LET(of_library, CublasLtProduct::create(library_, *call, problem));
    without_proposals_ += of_library.proposals().empty();
    for (size_t i = 0; i < of_library.proposals().size(); ++i) {
      const CublasLtAlgorithm& algorithm = of_library.proposals()[i].algorithm;
      SINTER_TRY(stream_.fill(other_.address(), 0xff, other_.bytes()));
      SINTER_TRY(of_library.run(i, {a_.address(), b_.address(), other_.address()},
                                workspace_.address(), stream_.handle()));
      // Swizzles and custom options deal tiles to blocks: they are told apart all the same.
      SINTER_TRY(compare(result, shape, product,
                         {&by_algorithm_[algorithm], algorithm[2] > 1 ? &split_ : &unsplit_}));
    }
    return {};
  }

  CudaDevicePtr device_;
  CudaLibrary kernels_;
  std::shared_ptr<CublasLt> library_;
  CudaStream stream_;
  CudaMemory a_, b_, own_, other_, workspace_, counts_;
  int64_t products_ = 0, without_proposals_ = 0;
  Tally own_tiles_, tiled_linear_, unsplit_, split_;
  std::map<CublasLtAlgorithm, Tally> by_algorithm_;
};

Status run(llvm::ArrayRef<std::string> arguments) {
  if (arguments.size() == 1 && arguments[0] == "--compile") {
    SINTER_LET(code, machine_code("sm_90a"));
    fmt::print("{} bytes of machine code for sm_90a\n", code.size());
    return {};
  }
  const bool writes = arguments.size() == 2 && arguments[0] == "--json";
  if (!arguments.empty() && !writes)
    return fail("usage: product_order [--json FILE | --compile]", {}, {}, ExitCode::usage);
  SINTER_LET(experiment, Experiment::create());
  SINTER_TRY(experiment.measure());
  experiment.print();
  if (!writes) return {};
  std::ofstream file(arguments[1]);
  file << experiment.json().dump(1) << '\n';
  if (!file.flush()) return fail("cannot be written", arguments[1]);
  return {};
}

}  // namespace
}  // namespace sinter

int main(int count, char** arguments) {
  const sinter::Status done =
      sinter::run(std::vector<std::string>(arguments + 1, arguments + count));
  if (done) return 0;
  std::fprintf(stderr, "product_order: %s\n", done.error().message().c_str());
  return static_cast<int>(done.error().code);
}
