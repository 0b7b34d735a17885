#include "frontends/files/npy.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstring>

#include "frontends/files/crc32.h"

namespace sinter {
namespace {

constexpr uint64_t max_npy_header_bytes = 1 << 16;  // NumPy itself reads 10,000
constexpr size_t npy_alignment = 64;                // of the elements in the file

/// Element types of NumPy by kind and bytes, as they stand in `descr` after the byte order.
constexpr std::pair<std::string_view, FileDType> npy_dtypes[] = {
    {"f4", FileDType::F32}, {"f2", FileDType::F16},  {"f8", FileDType::F64}, {"i4", FileDType::I32},
    {"i8", FileDType::I64}, {"b1", FileDType::BOOL}, {"i1", FileDType::I8},  {"u1", FileDType::U8},
    {"i2", FileDType::I16}, {"u2", FileDType::U16},  {"u4", FileDType::U32}, {"u8", FileDType::U64},
    {"c8", FileDType::C64}};

Result<FileDType> parse_npy_descr(std::string_view descr) {
  const std::string shown = printable(descr, 60);
  const char order = descr.empty() ? '\0' : descr[0];
  for (const auto& [name, dtype] : npy_dtypes) {
    if (descr.empty() || descr.substr(1) != name) continue;
    if (size_bits(dtype) == 8 && (order == '|' || order == '<' || order == '>')) return dtype;
    if (order == '<') return dtype;
    if (order == '>')
      return fail(
          fmt::format("the elements are big-endian (\"{}\"), expected \"<{}\"", shown, name), {},
          fmt::format("save array.astype(\"<{}\")", name));
  }
  const bool may_be_bf16 = descr == "<V2" || descr == "|V2";
  return fail(
      fmt::format("elements of type \"{}\", expected <f4, <f2, <f8, an integer type or |b1", shown),
      {}, may_be_bf16 ? "bfloat16 has no type in .npy: save safetensors" : "convert the array");
}

struct NpyHeader {
  FileDType dtype = FileDType::F32;
  bool fortran = false;
  std::vector<int64_t> dims;
};

/// Reads the dictionary, whose values are a text, True or False, and a tuple of integers.
class NpyHeaderReader {
 public:
  explicit NpyHeaderReader(std::string_view text) : text_(text) {}

  Result<NpyHeader> read() {
    SINTER_TRY(expect('{'));
    while (!take('}')) {
      SINTER_LET(key, quoted());
      SINTER_TRY(expect(':'));
      SINTER_TRY(value(key));
      if (take(',')) continue;
      SINTER_TRY(expect('}'));
      break;
    }
    skip_blanks();
    if (at_ != text_.size()) return unexpected("the header's end");
    for (size_t i = 0; i < keys.size(); ++i)
      if (!seen_[i]) return fail(fmt::format("the header has no \"{}\"", keys[i]), {}, repair);
    return header_;
  }

  static constexpr const char* repair = "write the file again with numpy.save";

 private:
  static constexpr std::array<std::string_view, 3> keys{"descr", "fortran_order", "shape"};

  void skip_blanks() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }
  bool take(char wanted) {
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  tl::unexpected<Error> unexpected(std::string_view wanted) const {
    const std::string found = at_ == text_.size()
                                  ? std::string("its end")
                                  : fmt::format("\"{}\"", printable(text_.substr(at_, 1)));
    return fail(fmt::format("header byte {}: expected {}, got {}", at_, wanted, found), {}, repair);
  }
  Status expect(char wanted) {
    if (take(wanted)) return {};
    return unexpected(fmt::format("\"{}\"", wanted));
  }

  Result<std::string_view> quoted() {
    skip_blanks();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') return unexpected("a text in quotes");
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos)
      return fail(fmt::format("header byte {}: the text has no end", at_), {}, repair);
    const std::string_view text = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return text;
  }

  Status value(std::string_view key) {
    const size_t index =
        static_cast<size_t>(std::find(keys.begin(), keys.end(), key) - keys.begin());
    if (index == keys.size())
      return fail(
          fmt::format("the header has the key \"{}\", expected descr, fortran_order or shape",
                      printable(key, 60)),
          {}, repair);
    if (std::exchange(seen_[index], true))
      return fail(fmt::format("the header has \"{}\" twice", key), {}, repair);
    return index == 0 ? descr() : index == 1 ? fortran_order() : shape();
  }

  Status descr() {
    skip_blanks();
    if (at_ < text_.size() && text_[at_] == '[')
      return fail("the elements have fields, expected one number each", {},
                  "save each field as an array of its own");
    SINTER_LET(text, quoted());
    SINTER_LET(dtype, parse_npy_descr(text));
    header_.dtype = dtype;
    return {};
  }

  Status fortran_order() {
    skip_blanks();
    for (const auto& [word, value] : {std::pair("True", true), {"False", false}})
      if (text_.substr(at_).starts_with(word)) {
        header_.fortran = value;
        at_ += std::strlen(word);
        return {};
      }
    return unexpected("True or False");
  }

  Status shape() {
    SINTER_TRY(expect('('));
    while (!take(')')) {
      skip_blanks();
      int64_t extent = 0;
      const auto [end, error] =
          std::from_chars(text_.data() + at_, text_.data() + text_.size(), extent);
      if (error == std::errc::result_out_of_range)
        return fail(fmt::format("header byte {}: the extent has more than 63 bits", at_), {},
                    repair);
      if (error != std::errc() || extent < 0) return unexpected("an extent, 0 or more");
      if (header_.dims.size() == max_file_rank)
        return fail(fmt::format("more than {} axes", max_file_rank), {}, repair);
      header_.dims.push_back(extent);
      at_ = static_cast<size_t>(end - text_.data());
      if (take(',')) continue;
      SINTER_TRY(expect(')'));
      break;
    }
    return {};
  }

  std::string_view text_;
  size_t at_ = 0;
  std::array<bool, 3> seen_{};
  NpyHeader header_;
};

/// The order of the elements shows only where two axes have more than one.
bool order_matters(llvm::ArrayRef<int64_t> dims) {
  return std::count_if(dims.begin(), dims.end(), [](int64_t dim) { return dim > 1; }) > 1;
}

Result<NpyTensor> npy_tensor(std::string_view dictionary, uint64_t data_begin, uint64_t data_end) {
  SINTER_LET(header, NpyHeaderReader(dictionary).read());
  if (header.fortran && order_matters(header.dims))
    return fail("the elements are in Fortran order, expected C order", {},
                "save numpy.ascontiguousarray(array)");
  SINTER_LET(bytes, tensor_bytes(header.dtype, header.dims));
  const uint64_t found = data_end - data_begin;
  if (found != bytes)
    return fail(fmt::format("shape [{}] of {} needs {} bytes, {} are here: {} too {}",
                            fmt::join(header.dims, ", "), to_string(header.dtype), bytes, found,
                            bytes > found ? bytes - found : found - bytes,
                            bytes > found ? "few, it is truncated" : "many"),
                {}, NpyHeaderReader::repair);
  return NpyTensor{{{}, header.dtype, std::move(header.dims), data_begin, data_end}, 0};
}

/// The bytes before the dictionary: magic, version, and the dictionary's length in 2 or 4 bytes.
struct NpyPrelude {
  uint64_t size = 0, dictionary_size = 0;
};
Result<NpyPrelude> parse_npy_prelude(std::string_view start) {
  if (start.size() < 10 || !start.starts_with(npy_magic))
    return fail(fmt::format("the first bytes are \"{}\", expected \"\\x93NUMPY\"",
                            printable(start.substr(0, npy_magic.size()))),
                {}, "check that this is a .npy file");
  const int version = static_cast<unsigned char>(start[6]);
  if (version < 1 || version > 3)
    return fail(fmt::format("version {} of the format, 1 to 3 are read", version), {},
                NpyHeaderReader::repair);
  NpyPrelude prelude{version == 1 ? 10u : 12u, 0};
  if (start.size() < prelude.size)
    return fail(fmt::format("the file ends after {} bytes, inside its header", start.size()), {},
                NpyHeaderReader::repair);
  std::memcpy(&prelude.dictionary_size, start.data() + 8, prelude.size - 8);
  if (prelude.dictionary_size > max_npy_header_bytes)
    return fail(fmt::format("the header's length is {}, at most {} is read",
                            prelude.dictionary_size, max_npy_header_bytes),
                {}, NpyHeaderReader::repair);
  return prelude;
}

}  // namespace

Result<NpyTensor> read_npy(const BoundedFile& file, uint64_t begin, uint64_t end,
                           const std::string& where) {
  const auto in_place = [&](Error error) {
    error.where = where;
    return tl::make_unexpected(std::move(error));
  };
  std::string head(std::min<uint64_t>(end - begin, 12), '\0');
  SINTER_TRY(file.read(begin, std::as_writable_bytes(std::span(head))));
  auto prelude = parse_npy_prelude(head);
  if (!prelude) return in_place(std::move(prelude.error()));
  const uint64_t size = prelude->size + prelude->dictionary_size;
  if (size > end - begin)
    return fail(
        fmt::format("the header has {} bytes, but {} are here: it is truncated", size, end - begin),
        where, NpyHeaderReader::repair);
  head.resize(size);
  SINTER_TRY(file.read(begin, std::as_writable_bytes(std::span(head))));
  auto tensor = npy_tensor(std::string_view(head).substr(prelude->size), begin + size, end);
  if (!tensor) return in_place(std::move(tensor.error()));
  tensor->crc = crc32(std::as_bytes(std::span(head)));
  return tensor;
}

Result<TensorFile> open_npy(BoundedFile file) {
  SINTER_TRY(refuse_impostor(file));
  SINTER_LET(read, read_npy(file, 0, file.size(), file.path()));
  return TensorFile(std::move(file), {std::move(read.tensor)}, 0);
}

Result<std::string> npy_header(FileDType dtype, llvm::ArrayRef<int64_t> dims) {
  const auto type = std::find_if(std::begin(npy_dtypes), std::end(npy_dtypes),
                                 [&](const auto& one) { return one.second == dtype; });
  if (type == std::end(npy_dtypes))
    return fail(fmt::format("NumPy has no type for elements of {}", to_string(dtype)), {},
                "write safetensors");
  std::string dictionary =
      fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}{}), }}",
                  size_bits(dtype) == 8 ? '|' : '<', type->first, fmt::join(dims, ", "),
                  dims.size() == 1 ? "," : "");
  constexpr size_t prelude = 10;
  const size_t size =
      (prelude + dictionary.size() + 1 + npy_alignment - 1) / npy_alignment * npy_alignment;
  dictionary.resize(size - prelude - 1, ' ');
  dictionary += '\n';
  std::string header(npy_magic);
  header += '\x01';
  header += '\0';
  header += static_cast<char>(dictionary.size() & 0xFF);
  header += static_cast<char>(dictionary.size() >> 8);
  return header + dictionary;
}

Result<NpyWriter> NpyWriter::create(const std::string& path, FileDType dtype,
                                    llvm::ArrayRef<int64_t> dims) {
  SINTER_LET(bytes, tensor_bytes(dtype, dims));
  auto header = npy_header(dtype, dims);
  if (!header) {
    header.error().where = path;
    return tl::make_unexpected(std::move(header.error()));
  }
  SINTER_LET(file, AtomicFile::create(path));
  SINTER_TRY(file.write(std::as_bytes(std::span(*header))));
  return NpyWriter(std::move(file), bytes);
}

Status NpyWriter::write(std::span<const std::byte> bytes) {
  SINTER_CHECK(bytes.size() <= missing_, "{} bytes, {} are missing", bytes.size(), missing_);
  missing_ -= bytes.size();
  return file_.write(bytes);
}

Status NpyWriter::commit() {
  SINTER_CHECK(missing_ == 0, "{} bytes were not written", missing_);
  return file_.commit();
}

}  // namespace sinter
