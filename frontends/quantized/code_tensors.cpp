#include "frontends/quantized/code_tensors.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "frontends/quantized/layout_names.h"
#include "frontends/quantized/unpack.h"

namespace sinter {
namespace {

constexpr std::string_view kAgain = "the upload is incomplete or damaged: download it again";

/// Tensors beside codes that the weights do not need: of quantized activations.
constexpr std::string_view kActivationEnds[] = {".input_scale", ".input_zero_point",
                                                ".input_global_scale", ".output_scale",
                                                ".output_zero_point"};

int64_t blocks(int64_t extent, int64_t size) { return (extent + size - 1) / size; }

std::string shape_text(FileDType dtype, llvm::ArrayRef<int64_t> dims) {
  return fmt::format("{}[{}]", to_string(dtype), fmt::join(dims, ", "));
}

/// One tensor may hold several matrices, one below the other.
bool may_be_stacked(const WeightScheme& scheme) {
  const bool rows = scheme.layout == WeightLayout::plain || scheme.layout == WeightLayout::packed;
  return rows && scheme.symmetric &&
         (scheme.strategy == ScaleStrategy::channel || scheme.strategy == ScaleStrategy::group);
}

/// The bytes of a tensor of any type.
Result<std::vector<std::byte>> bytes_of_tensor(const FileTensors& files, std::string_view name) {
  const FileTensor* tensor = files.entry(name);
  if (!tensor) return tl::make_unexpected(files.missing(name));
  std::vector<std::byte> bytes(tensor->end - tensor->begin);
  SINTER_TRY(files.read_raw(name, bytes));
  return bytes;
}

/// The inputs sorted by group; inputs of one group keep their order.
std::vector<int32_t> sorted_inputs(llvm::ArrayRef<int32_t> groups) {
  std::vector<int32_t> order(groups.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int32_t>(i);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return groups[static_cast<size_t>(a)] < groups[static_cast<size_t>(b)];
  });
  return order;
}

/// A zero point of a GPTQ weight, less 1 or not, that is not the middle code, or not stored as the
/// first one is; and the first one.
std::optional<std::pair<int32_t, int32_t>> uneven_zero(const CodedTensor& weight,
                                                       std::span<const std::byte> stored) {
  CodedTensor with_zeros = weight;
  with_zeros.scheme.symmetric = false;
  with_zeros.scheme.zeros_less_one = false;
  std::vector<int32_t> zeros(static_cast<size_t>(weight.out * weight.groups()));
  unpack_zeros(with_zeros, stored, std::as_writable_bytes(std::span(zeros)));
  const int32_t middle = 1 << (weight.scheme.bits - 1), first = zeros.front();
  if (first != middle && first != middle - 1) return std::pair(first, zeros.back());
  for (int32_t zero : zeros)
    if (zero != first) return std::pair(first, zero);
  return std::nullopt;
}

std::string weight_name(std::string_view module) { return fmt::format("{}.weight", module); }
std::string_view module_of(std::string_view weight) {
  return weight.substr(0, weight.size() - std::string_view(".weight").size());
}

}  // namespace

class CodeTensors::Opener {
 public:
  Opener(CodeTensors& tensors, const Quantization& quantization)
      : tensors_(tensors), files_(*tensors.files_), quantization_(quantization) {}

  Status run() {
    for (const std::string& name : files_.names()) SINTER_TRY(find_codes(name));
    for (const std::string& name : files_.names())
      if (!hidden_.contains(name)) tensors_.names_.push_back(name);
    for (const auto& [name, weight] : tensors_.weights_)
      for (const std::string_view end : kCodedParts)
        if (const std::string part = name + std::string(end); tensors_.part_of(part))
          tensors_.names_.push_back(part);
    llvm::sort(tensors_.names_);
    return {};
  }

 private:
  /// The module whose codes a tensor holds; empty: it holds none.
  std::string_view module_of_codes(std::string_view name) const {
    for (const LayoutNames& layout : kLayoutNames) {
      if (!name.ends_with(layout.codes)) continue;
      if (layout.codes == ".weight") {
        const FileTensor* tensor = files_.entry(name);
        if (!tensor || size_bits(tensor->dtype) != 8) continue;
      }
      return name.substr(0, name.size() - layout.codes.size());
    }
    return {};
  }

  Status find_codes(std::string_view name) {
    const std::string_view module = module_of_codes(name);
    if (module.empty()) return {};
    auto scheme = quantization_.scheme_of(module);
    if (scheme && !*scheme && quantization_.files_decide)
      scheme = &quantization_.groups.front().scheme;
    if (!scheme) {
      Error error = std::move(scheme.error());
      error.where = place();
      return tl::make_unexpected(std::move(error));
    }
    if (!*scheme)
      return fail(fmt::format("tensor {} holds codes, but the config does not quantize {}",
                              printable(name), printable(module)),
                  place(), "give the config that belongs to the weights");
    const LayoutNames& layout = names_of((*scheme)->layout);
    if (!name.ends_with(layout.codes))
      return fail(fmt::format("tensor {} holds codes, but the config's layout has them in {}{}",
                              printable(name), printable(module), layout.codes),
                  place(), "give the config that belongs to the weights");
    return open_weight(std::string(module), **scheme, layout);
  }

  Status open_weight(const std::string& module, const WeightScheme& scheme,
                     const LayoutNames& layout) {
    CodedTensor weight;
    weight.scheme = scheme;
    hide(module, layout);
    SINTER_TRY(read_extents(module, layout, weight));
    SINTER_TRY(check_scales(module, layout, weight));
    if (needs_zeros(weight)) SINTER_TRY(check_zeros(module, layout, weight));
    if (!layout.groups.empty()) SINTER_TRY(read_order(module, layout, weight));
    tensors_.weights_.emplace(weight_name(module), std::move(weight));
    return {};
  }

  void hide(const std::string& module, const LayoutNames& layout) {
    for (std::string_view end :
         {layout.codes, layout.scales, layout.zeros, layout.groups, layout.factor, kShapeEnd})
      if (!end.empty()) hidden_.insert(module + std::string(end));
    for (std::string_view end : kActivationEnds) hidden_.insert(module + std::string(end));
  }

  static bool needs_zeros(const CodedTensor& weight) {
    return !weight.scheme.symmetric || weight.scheme.layout == WeightLayout::gptq;
  }

  /// A part of a weight that must be there, and its type one of `dtypes`.
  Result<const FileTensor*> part(const std::string& module, std::string_view end,
                                 llvm::ArrayRef<FileDType> dtypes) const {
    const std::string name = module + std::string(end);
    const FileTensor* tensor = files_.entry(name);
    if (!tensor)
      return fail(fmt::format("no tensor named \"{}\", which the codes of {} need", printable(name),
                              printable(module)),
                  place(), std::string(kAgain));
    if (llvm::is_contained(dtypes, tensor->dtype)) return tensor;
    std::string names;
    for (FileDType dtype : dtypes)
      names += fmt::format("{}{}", names.empty() ? "" : " or ", to_string(dtype));
    return fail(fmt::format("tensor {} is {}, expected elements of type {}", printable(name),
                            shape_text(tensor->dtype, tensor->dims), names),
                place(), "give the config that belongs to the weights");
  }

  Status expect_dims(const FileTensor& tensor, llvm::ArrayRef<int64_t> dims,
                     const CodedTensor& weight) const {
    if (llvm::ArrayRef<int64_t>(tensor.dims) == dims) return {};
    return fail(
        fmt::format("tensor {} is {}, but weights of [{}, {}] as the config has them ({}) "
                    "ask for {}",
                    printable(tensor.name), shape_text(tensor.dtype, tensor.dims), weight.out,
                    weight.in, to_string(weight.scheme), shape_text(tensor.dtype, dims)),
        place(), "give the config that belongs to the weights");
  }

  Status read_extents(const std::string& module, const LayoutNames& layout, CodedTensor& weight) {
    const WeightScheme& scheme = weight.scheme;
    const bool bytes = layout.codes == ".weight";
    const FileDType dtype = weight.small_scales() ? FileDType::U8
                            : !bytes              ? FileDType::I32
                            : scheme.is_float     ? FileDType::F8_E4M3
                                                  : FileDType::I8;
    SINTER_LET(codes, part(module, layout.codes, {dtype}));
    const bool stacked = codes->dims.size() == 3 && may_be_stacked(scheme);
    if ((codes->dims.size() != 2 && !stacked) || !weight.set_extents(codes->dims))
      return fail(
          fmt::format("tensor {} is {}, expected two axes of 1 to {} elements",
                      printable(codes->name), shape_text(dtype, codes->dims), kLargestExtent),
          place(), std::string(kAgain));
    const int64_t fields = 32 / scheme.bits;
    if (scheme.layout == WeightLayout::gptq) {
      weight.in = codes->dims[0] * fields;
      weight.out = codes->dims[1];
    } else if (scheme.layout == WeightLayout::awq) {
      weight.in = codes->dims[0];
      weight.out = codes->dims[1] * fields;
    } else if (weight.small_scales()) {
      weight.in = codes->dims[1] * 8 / scheme.bits;
    } else if (scheme.layout == WeightLayout::packed) {
      SINTER_TRY(read_shape(module, weight));
      SINTER_TRY(expect_dims(*codes, weight.row_dims(weight.words()), weight));
    }
    return {};
  }

  Status read_shape(const std::string& module, CodedTensor& weight) const {
    SINTER_LET(tensor, part(module, kShapeEnd, {FileDType::I64}));
    std::vector<int64_t> extents(weight.matrices == 0 ? 2 : 3);
    SINTER_TRY(expect_dims(*tensor, {static_cast<int64_t>(extents.size())}, weight));
    SINTER_LET(bytes, bytes_of_tensor(files_, tensor->name));
    std::memcpy(extents.data(), bytes.data(), bytes.size());
    if (weight.set_extents(extents)) return {};
    return fail(fmt::format("tensor {} says the shape [{}]", printable(tensor->name),
                            fmt::join(extents, ", ")),
                place(), std::string(kAgain));
  }

  std::vector<int64_t> scale_dims(const CodedTensor& weight) const {
    const WeightScheme& scheme = weight.scheme;
    switch (scheme.strategy) {
      case ScaleStrategy::tensor:
        return {1};
      case ScaleStrategy::block:
        return {blocks(weight.out, kScaleBlock), blocks(weight.in, kScaleBlock)};
      case ScaleStrategy::channel:
      case ScaleStrategy::group:
        break;
    }
    const int64_t groups =
        scheme.strategy == ScaleStrategy::group ? blocks(weight.in, scheme.group) : 1;
    if (scheme.layout == WeightLayout::gptq || scheme.layout == WeightLayout::awq)
      return {groups, weight.out};
    return weight.row_dims(groups);
  }

  /// Scales of 8 bits, and the number that belongs to all of them.
  Status read_small_scales(const std::string& module, const LayoutNames& layout,
                           CodedTensor& weight) const {
    const bool exponents = weight.scheme.exponents;
    weight.scale = exponents ? DType::bf16 : DType::f32;
    SINTER_LET(scales, part(module, layout.scales,
                            exponents ? std::vector{FileDType::U8, FileDType::F8_E8M0}
                                      : std::vector{FileDType::F8_E4M3}));
    SINTER_TRY(expect_dims(*scales, scale_dims(weight), weight));
    if (exponents) return {};
    SINTER_LET(factor, part(module, layout.factor, {FileDType::F32}));
    if (!factor->dims.empty()) SINTER_TRY(expect_dims(*factor, {1}, weight));
    SINTER_LET(bytes, bytes_of_tensor(files_, factor->name));
    std::memcpy(&weight.factor, bytes.data(), sizeof weight.factor);
    if (std::isfinite(weight.factor) && weight.factor > 0) return {};
    return fail(fmt::format("tensor {} is {}, expected a positive number", printable(factor->name),
                            weight.factor),
                place(), std::string(kAgain));
  }

  Status check_scales(const std::string& module, const LayoutNames& layout,
                      CodedTensor& weight) const {
    if (weight.small_scales()) return read_small_scales(module, layout, weight);
    SINTER_LET(scales,
               part(module, layout.scales, {FileDType::F16, FileDType::BF16, FileDType::F32}));
    weight.scale = *to_dtype(scales->dtype);
    // A scale of a whole tensor may have no axes.
    if (weight.scheme.strategy == ScaleStrategy::tensor && scales->dims.empty()) return {};
    return expect_dims(*scales, scale_dims(weight), weight);
  }

  Status check_zeros(const std::string& module, const LayoutNames& layout,
                     const CodedTensor& weight) const {
    const bool plain = weight.scheme.layout == WeightLayout::plain;
    SINTER_LET(zeros, part(module, layout.zeros, {plain ? FileDType::I8 : FileDType::I32}));
    std::vector<int64_t> dims = scale_dims(weight);
    const int64_t words = blocks(weight.out * weight.scheme.bits, 32);
    if (weight.scheme.layout == WeightLayout::packed)
      dims[0] = words;
    else if (!plain)
      dims[1] = words;
    else if (weight.scheme.strategy == ScaleStrategy::tensor && zeros->dims.empty())
      return {};
    return expect_dims(*zeros, dims, weight);
  }

  /// The groups of inputs, if the files have them and they do not follow the inputs' order.
  Status read_order(const std::string& module, const LayoutNames& layout, CodedTensor& weight) {
    const std::string name = module + std::string(layout.groups);
    if (!files_.entry(name) && !weight.scheme.act_order) return {};
    SINTER_LET(tensor, part(module, layout.groups, {FileDType::I32}));
    SINTER_TRY(expect_dims(*tensor, {weight.in}, weight));
    SINTER_LET(bytes, bytes_of_tensor(files_, tensor->name));
    std::vector<int32_t> groups(static_cast<size_t>(weight.in));
    std::memcpy(groups.data(), bytes.data(), bytes.size());
    // compressed-tensors writes -1 where groups have no order of their own.
    if (llvm::all_of(groups, [](int32_t group) { return group == -1; })) return {};
    const bool grouped = weight.scheme.strategy == ScaleStrategy::group;
    const int64_t size = grouped ? weight.scheme.group : weight.in;
    std::vector<int32_t> order = sorted_inputs(groups);
    for (size_t i = 0; i < order.size(); ++i) {
      const auto expected = static_cast<int32_t>(static_cast<int64_t>(i) / size);
      const int32_t group = groups[static_cast<size_t>(order[i])];
      if (group != expected)
        return fail(fmt::format("tensor {} does not have {} inputs in each group: input {} is of "
                                "group {}",
                                printable(tensor->name), size, order[i], group),
                    place(), std::string(kAgain));
    }
    if (llvm::is_sorted(order)) return {};
    const std::string own = weight_name(module) + ".order";
    weight.order = shared_.emplace(order, own).first->second;
    if (weight.order == own) tensors_.orders_.emplace(own, std::move(order));
    return {};
  }

  std::string place() const { return files_.files().front(); }

  CodeTensors& tensors_;
  const FileTensors& files_;
  const Quantization& quantization_;
  std::set<std::string, std::less<>> hidden_;
  std::map<std::vector<int32_t>, std::string> shared_;  // the name of an order
};

Result<std::shared_ptr<const CodeTensors>> CodeTensors::open(
    std::shared_ptr<const FileTensors> files, const Quantization& quantization) {
  const std::shared_ptr<CodeTensors> tensors(new CodeTensors(std::move(files)));
  SINTER_TRY(Opener(*tensors, quantization).run());
  return std::shared_ptr<const CodeTensors>(tensors);
}

std::optional<std::pair<const CodedTensors::value_type*, CodeTensors::Part>> CodeTensors::part_of(
    std::string_view name) const {
  for (const auto& [place, end] : llvm::enumerate(llvm::ArrayRef(kCodedParts).take_front(4))) {
    if (!name.ends_with(end)) continue;
    const auto part = static_cast<Part>(place);
    const auto at = weights_.find(name.substr(0, name.size() - end.size()));
    if (at == weights_.end()) return std::nullopt;
    const bool absent = (part == Part::zeros && !at->second.has_zeros()) ||
                        (part == Part::order && !orders_.contains(name));
    if (!absent) return std::pair(&*at, part);
  }
  return std::nullopt;
}

std::optional<TensorType> CodeTensors::find(std::string_view name) const {
  const auto found = part_of(name);
  if (!found) {
    // The files' own tensors but for the parts of quantized weights.
    return std::binary_search(names_.begin(), names_.end(), name) ? files_->find(name)
                                                                  : std::nullopt;
  }
  const CodedTensor& weight = found->first->second;
  switch (found->second) {
    case Part::codes:
      return weight.codes_type();
    case Part::scales:
      return weight.scales_type();
    case Part::zeros:
      return weight.zeros_type();
    case Part::order:
      break;
  }
  return weight.order_type();
}

std::vector<std::string> CodeTensors::names() const { return names_; }

Status CodeTensors::read(std::string_view name, std::span<std::byte> out) const {
  const auto found = part_of(name);
  if (!found) {
    if (!find(name)) return tl::make_unexpected(missing(name));
    return files_->read(name, out);
  }
  const CodedTensor& weight = found->first->second;
  const std::string module(module_of(found->first->first));
  const LayoutNames& layout = names_of(weight.scheme.layout);
  const auto stored = [&](std::string_view end) {
    return bytes_of_tensor(*files_, module + std::string(end));
  };
  if (found->second == Part::order) {
    const std::vector<int32_t>& order = orders_.find(name)->second;
    std::memcpy(out.data(), order.data(), out.size());
  } else if (found->second == Part::scales) {
    SINTER_LET(bytes, stored(layout.scales));
    unpack_scales(weight, bytes, out);
  } else if (found->second == Part::zeros) {
    SINTER_LET(bytes, stored(layout.zeros));
    unpack_zeros(weight, bytes, out);
  } else {
    if (weight.scheme.layout == WeightLayout::gptq && weight.scheme.symmetric) {
      SINTER_LET(zeros, stored(layout.zeros));
      if (const auto other = uneven_zero(weight, zeros))
        return fail(fmt::format("zero points of {} are {} and {}, but the config says that the "
                                "weights are symmetric, for which all are {} or all {}",
                                printable(module), other->first, other->second,
                                (1 << (weight.scheme.bits - 1)) - 1, 1 << (weight.scheme.bits - 1)),
                    files_->files().front(), "say sym: false in the config's quantization");
    }
    const auto order = orders_.find(weight.order);
    const std::span<const int32_t> inputs =
        order == orders_.end() ? std::span<const int32_t>() : std::span(order->second);
    if (stores_rows(weight)) {
      SINTER_TRY(files_->read_raw(module + std::string(layout.codes), out));
    } else {
      SINTER_LET(bytes, stored(layout.codes));
      unpack_codes(weight, bytes, out);
    }
    finish_codes(weight, inputs, out);
  }
  return {};
}

}  // namespace sinter
