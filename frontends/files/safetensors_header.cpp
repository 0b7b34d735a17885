// Reads and checks the JSON header of a safetensors file. Without a DOM: a header may have 100 MB.
#include <fmt/format.h>
#include <llvm/Support/CheckedArithmetic.h>

#include <algorithm>
#include <numeric>

#include "frontends/files/json.h"
#include "frontends/files/safetensors.h"

namespace sinter {
namespace {

constexpr const char* repair = "download the file again";

/// Follows the header's fixed form: an object of objects with three known members.
class HeaderVisitor final : public JsonVisitor {
 public:
  Status null() override { return unexpected("null"); }
  Status boolean(bool value) override { return unexpected(value ? "true" : "false"); }
  Status real(double value) override { return unexpected(fmt::format("{}", value)); }

  Status oversized(JsonOversized number) override { return unexpected(to_string(number)); }

  Status integer(int64_t value) override {
    if (in_ != In::numbers) return unexpected(fmt::format("{}", value));
    if (value < 0) return fail(fmt::format("expected an integer >= 0, got {}", value), {}, repair);
    std::vector<int64_t>& numbers = field_ == Field::shape ? tensor_.dims : offsets_;
    const size_t limit = field_ == Field::shape ? max_file_rank : 2;
    if (numbers.size() == limit)
      return fail(fmt::format("expected {} {} numbers, got more",
                              field_ == Field::shape ? "at most" : "exactly", limit),
                  {}, repair);
    numbers.push_back(value);
    return {};
  }

  Status string(std::string value) override {
    if (in_ == In::metadata) return {};
    if (in_ != In::tensor || field_ != Field::dtype)
      return unexpected(fmt::format("\"{}\"", printable(value, 60)));
    auto dtype = parse_file_dtype(value);
    if (!dtype)
      return fail(fmt::format("unknown element type \"{}\"", printable(value, 60)), {},
                  "convert the tensor to F32, F16 or BF16");
    tensor_.dtype = *dtype;
    return {};
  }

  Status begin_object() override {
    if (in_ == In::file) {
      in_ = In::header;
    } else if (in_ == In::header && tensor_.name == "__metadata__") {
      if (has_metadata_) return fail("this key stands in the header twice", {}, repair);
      has_metadata_ = true;
      in_ = In::metadata;
    } else if (in_ == In::header) {
      in_ = In::tensor;
      seen_ = 0;
      tensor_.dims.clear();
      offsets_.clear();
    } else {
      return unexpected("an object");
    }
    return {};
  }

  Status key(std::string name) override {
    if (in_ == In::header) {
      tensor_.name = std::move(name);
      return {};
    }
    if (in_ == In::metadata) return {};
    if (name == "dtype")
      field_ = Field::dtype;
    else if (name == "shape")
      field_ = Field::shape;
    else if (name == "data_offsets")
      field_ = Field::offsets;
    else
      return fail("expected dtype, shape or data_offsets, got another key", {}, repair);
    if (seen_ & bit(field_)) return fail("this key stands here twice", {}, repair);
    seen_ |= bit(field_);
    return {};
  }

  Status end_object() override {
    if (in_ == In::tensor) SINTER_TRY(finish_tensor());
    in_ = in_ == In::header ? In::file : In::header;
    return {};
  }

  Status begin_array() override {
    if (in_ != In::tensor || field_ == Field::dtype) return unexpected("an array");
    in_ = In::numbers;
    return {};
  }

  Status end_array() override {
    in_ = In::tensor;
    return {};
  }

  std::vector<FileTensor> tensors;

 private:
  enum class In : uint8_t { file, header, metadata, tensor, numbers };
  enum class Field : uint8_t { dtype, shape, offsets };
  static unsigned bit(Field field) { return 1u << static_cast<unsigned>(field); }

  Status unexpected(const std::string& got) const {
    const char* expected = in_ == In::file || in_ == In::header ? "an object"
                           : in_ == In::numbers                 ? "an integer >= 0"
                           : in_ == In::metadata                ? "a string"
                           : field_ == Field::dtype             ? "an element type"
                                                                : "an array of integers";
    return fail(fmt::format("expected {}, got {}", expected, got), {}, repair);
  }

  Status finish_tensor() {
    for (auto [field, name] : {std::pair(Field::dtype, "dtype"), std::pair(Field::shape, "shape"),
                               std::pair(Field::offsets, "data_offsets")})
      if (!(seen_ & bit(field))) return fail(fmt::format("{} is missing", name), {}, repair);
    if (offsets_.size() != 2)
      return fail(fmt::format("data_offsets: expected 2 numbers, got {}", offsets_.size()), {},
                  repair);
    tensor_.begin = static_cast<uint64_t>(offsets_[0]);
    tensor_.end = static_cast<uint64_t>(offsets_[1]);
    if (tensor_.begin > tensor_.end)
      return fail(
          fmt::format("data_offsets begin at {} after their end {}", tensor_.begin, tensor_.end),
          {}, repair);
    SINTER_LET(bytes, tensor_bytes(tensor_.dtype, tensor_.dims));
    if (tensor_.end - tensor_.begin != bytes)
      return fail(fmt::format("data_offsets span {} bytes, but shape [{}] of {} needs {}",
                              tensor_.end - tensor_.begin, fmt::join(tensor_.dims, ", "),
                              to_string(tensor_.dtype), bytes),
                  {}, repair);
    tensors.push_back(tensor_);
    return {};
  }

  In in_ = In::file;
  Field field_ = Field::dtype;
  unsigned seen_ = 0;
  bool has_metadata_ = false;
  FileTensor tensor_;
  std::vector<int64_t> offsets_;
};

/// Every data byte belongs to exactly one tensor.
Status check_layout(llvm::ArrayRef<FileTensor> tensors, uint64_t data_bytes,
                    const std::string& path) {
  std::vector<uint32_t> order(tensors.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return std::tie(tensors[a].begin, tensors[a].end, tensors[a].name) <
           std::tie(tensors[b].begin, tensors[b].end, tensors[b].name);
  });
  const FileTensor* last = nullptr;
  uint64_t reached = 0;
  for (uint32_t i : order) {
    const FileTensor& tensor = tensors[i];
    if (tensor.begin < reached)
      return fail(fmt::format("tensor \"{}\" begins at data byte {}, inside tensor \"{}\" which "
                              "ends at {}",
                              printable(tensor.name), tensor.begin, printable(last->name), reached),
                  path, repair);
    if (tensor.begin > reached)
      return fail(fmt::format("data bytes {} to {} before tensor \"{}\" belong to no tensor",
                              reached, tensor.begin, printable(tensor.name)),
                  path, repair);
    reached = tensor.end;
    last = &tensor;
  }
  if (reached != data_bytes)
    return fail(
        fmt::format("the tensors need {} data bytes, the file has {}: {} too {}", reached,
                    data_bytes, reached > data_bytes ? reached - data_bytes : data_bytes - reached,
                    reached > data_bytes ? "few, it is truncated" : "many"),
        path, repair);
  return {};
}

}  // namespace

Result<uint64_t> tensor_bytes(FileDType dtype, llvm::ArrayRef<int64_t> dims) {
  std::optional<int64_t> bits = size_bits(dtype);
  bool is_empty = false;
  for (int64_t dim : dims) {
    if (dim < 0) return fail(fmt::format("the extent {} is negative", dim));
    is_empty |= dim == 0;
    if (bits) bits = llvm::checkedMul(*bits, std::max<int64_t>(dim, 1));
  }
  if (!bits)
    return fail(fmt::format("shape [{}] of {} has more than 2^63 bits", fmt::join(dims, ", "),
                            to_string(dtype)),
                {}, repair);
  if (is_empty) return uint64_t{0};
  if (*bits % 8 != 0)
    return fail(fmt::format("shape [{}] of {} has {} bits, which is no whole number of bytes",
                            fmt::join(dims, ", "), to_string(dtype), *bits),
                {}, repair);
  return static_cast<uint64_t>(*bits / 8);
}

Result<std::vector<FileTensor>> parse_safetensors_header(std::string_view header,
                                                         uint64_t data_bytes,
                                                         const std::string& path) {
  HeaderVisitor visitor;
  SINTER_TRY(visit_json(header, path, visitor));
  std::vector<FileTensor> tensors = std::move(visitor.tensors);
  SINTER_TRY(sort_by_name(tensors, path, repair));
  SINTER_TRY(check_layout(tensors, data_bytes, path));
  return tensors;
}

}  // namespace sinter
