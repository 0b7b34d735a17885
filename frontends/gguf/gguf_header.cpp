#include "frontends/gguf/gguf_header.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/Support/MathExtras.h>

#include <algorithm>
#include <cstring>

namespace sinter {
namespace {

constexpr uint64_t kMaxKeys = 1 << 14;
constexpr uint64_t kMaxTensors = 1 << 17;
constexpr uint64_t kMaxNameBytes = 63;
constexpr uint64_t kMinTensorBytes = 33;  // a name of one byte, and one axis
constexpr uint64_t kMaxKeyBytes = 65535;
constexpr uint32_t kMaxDims = 4;
constexpr uint64_t kDefaultAlignment = 32;
constexpr uint64_t kMaxInt64 = uint64_t{1} << 63;  // the first that int64_t lacks
constexpr const char* kRepair = "download the file again";

const GgufTypeInfo* type_of_id(uint32_t id);

/// Reads a file from its beginning on, a piece at a time. Nothing behind its end is asked for.
class GgufCursor {
 public:
  explicit GgufCursor(const BoundedFile& file) : file_(file) {}

  uint64_t offset() const { return offset_; }
  uint64_t left() const { return file_.size() - offset_; }

  Status read(std::span<std::byte> out) {
    if (out.empty()) return {};
    if (out.size() > left())
      return fail(fmt::format("the file ends at byte {}, within {} bytes from byte {} on",
                              file_.size(), out.size(), offset_),
                  file_.path(), kRepair);
    if (out.size() >= kPiece) {
      SINTER_TRY(file_.read(offset_, out));
    } else {
      if (offset_ < begin_ || offset_ + out.size() > begin_ + piece_.size()) SINTER_TRY(fill());
      std::memcpy(out.data(), piece_.data() + (offset_ - begin_), out.size());
    }
    offset_ += out.size();
    return {};
  }

  template <typename T>
  Result<T> number() {
    T value;
    SINTER_TRY(read(std::as_writable_bytes(std::span(&value, 1))));
    return value;
  }

  /// A string of at most `max_bytes`; `what` names it in errors.
  Result<std::string> text(uint64_t max_bytes, std::string_view what) {
    SINTER_LET(length, number<uint64_t>());
    if (length > max_bytes || length > left())
      return fail(fmt::format("{} has {} bytes; the file has {} more, and at most {} are read",
                              what, length, left(), max_bytes),
                  file_.path(), kRepair);
    std::string text(length, '\0');
    SINTER_TRY(read(std::as_writable_bytes(std::span(text))));
    return text;
  }

 private:
  static constexpr uint64_t kPiece = 1 << 16;

  Status fill() {
    begin_ = offset_;
    piece_.resize(std::min(kPiece, left()));
    return file_.read(begin_, std::span(piece_));
  }

  const BoundedFile& file_;
  uint64_t offset_ = 0, begin_ = 0;
  std::vector<std::byte> piece_;
};

class GgufReader {
 public:
  explicit GgufReader(const BoundedFile& file) : file_(file), cursor_(file) {}

  Result<GgufHeader> run() {
    SINTER_TRY(read_start());
    for (uint64_t i = 0; i < keys_; ++i) SINTER_TRY(read_key());
    SINTER_LET(alignment, alignment_of());
    if (tensors_ > cursor_.left() / kMinTensorBytes)
      return broken(fmt::format("{} tensors take more bytes than the {} that the file has left",
                                tensors_, cursor_.left()));
    header_.tensors.reserve(tensors_);
    for (uint64_t i = 0; i < tensors_; ++i) SINTER_TRY(read_tensor());
    SINTER_TRY(place(alignment));
    return std::move(header_);
  }

 private:
  tl::unexpected<Error> broken(std::string what, std::string hint = kRepair) const {
    return fail(std::move(what), file_.path(), std::move(hint));
  }

  Status read_start() {
    char magic[4] = {};
    SINTER_TRY(cursor_.read(std::as_writable_bytes(std::span(magic))));
    if (std::string_view(magic, 4) != "GGUF") return broken("the file does not begin with GGUF");
    SINTER_LET(version, cursor_.number<uint32_t>());
    if ((version & 0xFFFF) == 0)
      return broken("the file's numbers are big-endian", "convert the model to little-endian GGUF");
    if (version != 2 && version != 3)
      return broken(fmt::format("version {} of GGUF is not read; 2 and 3 are", version),
                    "convert the model again");
    header_.version = version;
    SINTER_LET(tensors, cursor_.number<uint64_t>());
    SINTER_LET(keys, cursor_.number<uint64_t>());
    if (tensors > kMaxTensors || keys > kMaxKeys)
      return broken(fmt::format("{} tensors and {} keys; at most {} and {} are read", tensors, keys,
                                kMaxTensors, kMaxKeys));
    tensors_ = tensors;
    keys_ = keys;
    return {};
  }

  Status read_key() {
    SINTER_LET(key, cursor_.text(kMaxKeyBytes, "a key"));
    if (key.empty()) return broken("a key is empty");
    SINTER_LET(type, read_type(key));
    SINTER_LET(value, type == GgufValueType::array ? read_array(key) : read_value(key, type));
    if (!header_.metadata.emplace(key, std::move(value)).second)
      return broken(fmt::format("the key {} is stored twice", printable(key, 80)));
    return {};
  }

  Result<GgufValueType> read_type(const std::string& key) {
    SINTER_LET(id, cursor_.number<uint32_t>());
    if (id > static_cast<uint32_t>(GgufValueType::f64))
      return broken(fmt::format("{} has the unknown type {}", printable(key, 80), id));
    return static_cast<GgufValueType>(id);
  }

  Result<GgufValue> read_value(const std::string& key, GgufValueType type) {
    switch (type) {
      case GgufValueType::string: {
        SINTER_LET(text, cursor_.text(cursor_.left(), printable(key, 80)));
        return GgufValue(std::move(text));
      }
      case GgufValueType::boolean: {
        SINTER_LET(value, cursor_.number<uint8_t>());
        if (value > 1)
          return broken(
              fmt::format("{} is {}, which is no truth value", printable(key, 80), value));
        return GgufValue(value == 1);
      }
      default: {
        std::vector<std::byte> bytes(size_bytes(type));
        SINTER_TRY(cursor_.read(bytes));
        const GgufNumbers one(type, std::move(bytes));
        if (type == GgufValueType::f32 || type == GgufValueType::f64) return GgufValue(one.real(0));
        if (type == GgufValueType::u64 && one.integer(0) < 0)
          return GgufValue(static_cast<uint64_t>(one.integer(0)));
        return GgufValue(one.integer(0));
      }
    }
  }

  Result<GgufValue> read_array(const std::string& key) {
    SINTER_LET(type, read_type(key));
    SINTER_LET(count, cursor_.number<uint64_t>());
    if (type == GgufValueType::array)
      return broken(fmt::format("{} is an array of arrays", printable(key, 80)));
    const uint64_t least = type == GgufValueType::string ? 8 : size_bytes(type);
    if (count > cursor_.left() / least)
      return broken(fmt::format("{} has {} elements of {} bytes or more, but the file has {} more",
                                printable(key, 80), count, least, cursor_.left()));
    if (type != GgufValueType::string) {
      std::vector<std::byte> bytes(count * least);
      SINTER_TRY(cursor_.read(bytes));
      return GgufValue(GgufNumbers(type, std::move(bytes)));
    }
    GgufStrings strings;
    strings.reserve(count);
    for (uint64_t i = 0; i < count; ++i) {
      SINTER_LET(text, cursor_.text(cursor_.left(), printable(key, 80)));
      strings.add(text);
    }
    return GgufValue(std::move(strings));
  }

  Result<uint64_t> alignment_of() const {
    const auto given = header_.metadata.find("general.alignment");
    if (given == header_.metadata.end()) return kDefaultAlignment;
    const int64_t* alignment = std::get_if<int64_t>(&given->second);
    if (!alignment || *alignment <= 0 || !llvm::isPowerOf2_64(static_cast<uint64_t>(*alignment)) ||
        *alignment > int64_t{UINT32_MAX})
      return broken(fmt::format("general.alignment is {}, not a power of two below 2^32",
                                to_string(given->second)));
    return static_cast<uint64_t>(*alignment);
  }

  Status read_tensor() {
    SINTER_LET(name, cursor_.text(kMaxNameBytes, "the name of a tensor"));
    if (name.empty()) return broken("a tensor has no name");
    GgufTensor tensor{std::move(name), GgufType::F32, {}, 0, 0, 0};
    SINTER_LET(rank, cursor_.number<uint32_t>());
    if (rank == 0 || rank > kMaxDims)
      return broken(
          fmt::format("{} has {} axes; a tensor has 1 to {}", shown(tensor), rank, kMaxDims));
    for (uint32_t i = 0; i < rank; ++i) {
      SINTER_LET(dim, cursor_.number<uint64_t>());
      if (dim == 0 || dim >= kMaxInt64)
        return broken(fmt::format("{} has an axis of {} elements", shown(tensor), dim));
      tensor.dims.push_back(static_cast<int64_t>(dim));
    }
    SINTER_LET(id, cursor_.number<uint32_t>());
    const GgufTypeInfo* info = type_of_id(id);
    if (!info) return broken(fmt::format("{} has the unknown type {}", shown(tensor), id));
    tensor.type = static_cast<GgufType>(info - &gguf_type_info(GgufType::F32));
    SINTER_TRY(measure(tensor, *info));
    std::reverse(tensor.dims.begin(), tensor.dims.end());
    SINTER_LET(offset, cursor_.number<uint64_t>());
    tensor.begin = offset;
    header_.tensors.push_back(std::move(tensor));
    return {};
  }

  /// Sets the tensor's bytes. Its dims have the file's order.
  Status measure(GgufTensor& tensor, const GgufTypeInfo& info) const {
    if (tensor.dims[0] % info.block_elements != 0)
      return broken(fmt::format("{} has rows of {} elements, and {} has blocks of {}",
                                shown(tensor), tensor.dims[0], info.name, info.block_elements));
    uint64_t bytes = static_cast<uint64_t>(info.block_bytes);
    for (size_t i = 0; i < tensor.dims.size(); ++i) {
      const auto count =
          static_cast<uint64_t>(i == 0 ? tensor.dims[0] / info.block_elements : tensor.dims[i]);
      // More than the file has: no product of the rest is formed.
      if (bytes > file_.size() / count)
        return broken(fmt::format(
            "{} {} of {} has more bytes than the file, which has {}", shown(tensor),
            fmt::format("[{}]", fmt::join(tensor.dims.rbegin(), tensor.dims.rend(), ", ")),
            info.name, file_.size()));
      bytes *= count;
    }
    tensor.bytes = bytes;
    return {};
  }

  /// Turns offsets from the start of the data into places in the file. The tensors stand one behind
  /// the other, each at a multiple of the alignment.
  Status place(uint64_t alignment) {
    const auto aligned = [&](uint64_t at) { return (at + alignment - 1) & ~(alignment - 1); };
    const uint64_t start = aligned(cursor_.offset());
    uint64_t expected = 0;
    for (GgufTensor& tensor : header_.tensors) {
      if (tensor.begin != expected)
        return broken(
            fmt::format("{} lies at byte {} of the data, not at {}, where the one before "
                        "it ends",
                        shown(tensor), tensor.begin, expected));
      if (start > file_.size() || expected > file_.size() - start ||
          tensor.bytes > file_.size() - start - expected)
        return broken(fmt::format("{} has {} bytes from byte {} on, but the file has {}",
                                  shown(tensor), tensor.bytes, start + expected, file_.size()));
      tensor.begin = start + expected;
      expected = aligned(expected + tensor.bytes);
    }
    return {};
  }

  static std::string shown(const GgufTensor& tensor) {
    return fmt::format("tensor {}", printable(tensor.name, 80));
  }

  const BoundedFile& file_;
  GgufCursor cursor_;
  GgufHeader header_;
  uint64_t tensors_ = 0, keys_ = 0;
};

constexpr GgufTypeInfo kBlockTypes[] = {
#define SINTER_GGUF_TYPE(name, id, elements, bytes) {#name, id, elements, bytes},
#include "frontends/gguf/gguf_types.def"
};

const GgufTypeInfo* type_of_id(uint32_t id) {
  const auto found =
      llvm::find_if(kBlockTypes, [&](const GgufTypeInfo& one) { return one.id == id; });
  return found == std::end(kBlockTypes) ? nullptr : found;
}

}  // namespace

const GgufTypeInfo& gguf_type_info(GgufType type) { return kBlockTypes[static_cast<size_t>(type)]; }

Result<GgufHeader> read_gguf_header(const BoundedFile& file) { return GgufReader(file).run(); }

}  // namespace sinter
