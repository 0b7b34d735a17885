// A cubin is an ELF file. Its section `.nv.info` has records of the form
//
//   format (1 byte), attribute (1 byte), size (2 bytes), payload
//
// The payload of a record that concerns a function begins with the function's number in the symbol
// table; the records of `.nv.info.KERNEL` are the kernel's. NVIDIA's cuobjdump names the attributes
// EIATTR_*. `.nv.shared.KERNEL` is as large as the kernel's static shared memory.
// tests/runtime/kernel_resources_test.cpp compares with what ptxas says.
#include "runtime/cuda/kernel_resources.h"

#include <elf.h>

#include <cstring>
#include <string>
#include <vector>

namespace sinter {
namespace {

constexpr uint8_t kSizedFormat = 0x04;  // EIFMT_SVAL; of other formats `size` is the value
constexpr uint8_t kRegisterCount = 0x2f, kMinStackSize = 0x12;
constexpr uint8_t kParameterBytes = 0x19, kMaxThreads = 0x05;
// From compute capability 9.0 on the system's own part of a block's memory counts, where the
// section of this name is.
constexpr std::string_view kReservedSection = ".nv.shared.reserved.0";
constexpr uint64_t kReservedBytes = 1024;

struct Section {
  std::string_view name;
  Elf64_Shdr header;
};

/// Reads within the bounds of the file.
class CubinFile {
 public:
  explicit CubinFile(std::string_view bytes) : bytes_(bytes) {
    if (!read_sections()) sections_.clear();
  }

  const Section* find(std::string_view name) const {
    for (const Section& section : sections_)
      if (section.name == name) return &section;
    return nullptr;
  }

  /// The name of a symbol; "" if there is none.
  std::string_view symbol(uint32_t number) const {
    const Section *symbols = find(".symtab"), *names = find(".strtab");
    Elf64_Sym symbol;
    if (!symbols || !names || number >= symbols->header.sh_size / sizeof symbol ||
        !copy(symbol, symbols->header.sh_offset + number * sizeof symbol))
      return {};
    return text(names->header, symbol.st_name);
  }

  /// "" for a section that lies outside of the file.
  std::string_view content(const Section& section) const {
    const uint64_t begin = section.header.sh_offset, size = section.header.sh_size;
    if (begin > bytes_.size() || size > bytes_.size() - begin) return {};
    return bytes_.substr(begin, size);
  }

 private:
  bool read_sections() {
    Elf64_Ehdr head;
    if (!copy(head, 0) || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_ident[EI_CLASS] != ELFCLASS64)
      return false;
    for (uint64_t i = 0; i < head.e_shnum; ++i)
      if (!copy(sections_.emplace_back().header, head.e_shoff + i * sizeof(Elf64_Shdr)))
        return false;
    if (head.e_shstrndx >= sections_.size()) return false;
    const Elf64_Shdr names = sections_[head.e_shstrndx].header;
    for (Section& section : sections_) section.name = text(names, section.header.sh_name);
    return true;
  }

  template <typename T>
  bool copy(T& out, uint64_t at) const {
    if (at > bytes_.size() || sizeof out > bytes_.size() - at) return false;
    std::memcpy(&out, bytes_.data() + at, sizeof out);
    return true;
  }

  std::string_view text(const Elf64_Shdr& strings, uint64_t offset) const {
    const std::string_view all = content({{}, strings});
    if (offset >= all.size()) return {};
    return all.substr(offset, all.find('\0', offset) - offset);
  }

  std::string_view bytes_;
  std::vector<Section> sections_;
};

struct Record {
  uint8_t attribute;
  uint16_t size;
  std::string_view payload;

  uint32_t number(size_t index) const {
    uint32_t value = 0;
    if ((index + 1) * sizeof value <= payload.size())
      std::memcpy(&value, payload.data() + index * sizeof value, sizeof value);
    return value;
  }
};

/// nullopt: a record does not end in the section.
std::optional<std::vector<Record>> records_of(std::string_view bytes) {
  std::vector<Record> records;
  while (bytes.size() >= 4) {
    Record& record = records.emplace_back();
    const auto format = static_cast<uint8_t>(bytes[0]);
    record.attribute = static_cast<uint8_t>(bytes[1]);
    std::memcpy(&record.size, bytes.data() + 2, sizeof record.size);
    bytes.remove_prefix(4);
    if (format != kSizedFormat) continue;
    if (record.size > bytes.size()) return std::nullopt;
    record.payload = bytes.substr(0, record.size);
    bytes.remove_prefix(record.size);
  }
  return records;
}

}  // namespace

std::optional<KernelResources> kernel_resources(std::string_view cubin, std::string_view kernel) {
  const CubinFile file(cubin);
  const Section *info = file.find(".nv.info"),
                *own_info = file.find(".nv.info." + std::string(kernel));
  if (!info || !own_info) return std::nullopt;
  const auto records = records_of(file.content(*info)), own = records_of(file.content(*own_info));
  if (!records || !own) return std::nullopt;
  KernelResources found;
  bool has_registers = false;
  for (const Record& record : *records) {
    if (record.payload.size() != 8 || file.symbol(record.number(0)) != kernel) continue;
    if (record.attribute == kMinStackSize) found.spill_bytes = record.number(1);
    if (record.attribute != kRegisterCount) continue;
    found.registers = record.number(1);
    has_registers = true;
  }
  if (!has_registers) return std::nullopt;
  for (const Record& record : *own) {
    if (record.attribute == kParameterBytes) found.parameter_bytes = record.size;
    if (record.attribute == kMaxThreads) found.most_threads = record.number(0);
  }
  if (const Section* shared = file.find(".nv.shared." + std::string(kernel))) {
    uint64_t bytes = shared->header.sh_size;
    if (file.find(kReservedSection) && bytes >= kReservedBytes) bytes -= kReservedBytes;
    found.shared_bytes = static_cast<int64_t>(bytes);
  }
  return found;
}

}  // namespace sinter
