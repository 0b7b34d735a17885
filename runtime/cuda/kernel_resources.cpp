// A cubin is an ELF file. Its section `.nv.info` has records of the form
//
//   format (1 byte), attribute (1 byte), size (2 bytes), payload
//
// of which those that concern a function begin with its number in the symbol table; the attributes
// are those that NVIDIA's cuobjdump names EIATTR_*. `.nv.shared.KERNEL` is as large as the kernel's
// static shared memory. tests/runtime/kernel_resources_test.cpp compares with what ptxas says.
#include "runtime/cuda/kernel_resources.h"

#include <elf.h>

#include <cstring>
#include <string>
#include <vector>

namespace sinter {
namespace {

constexpr uint8_t kSizedFormat = 0x04;  // EIFMT_SVAL; the other formats have no payload
constexpr uint8_t kRegisterCount = 0x2f, kMinStackSize = 0x12;
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

}  // namespace

std::optional<KernelResources> kernel_resources(std::string_view cubin, std::string_view kernel) {
  const CubinFile file(cubin);
  const Section* info = file.find(".nv.info");
  if (!info) return std::nullopt;
  KernelResources found;
  bool has_registers = false;
  const std::string_view records = file.content(*info);
  for (size_t at = 0; records.size() - at >= 4;) {
    const auto format = static_cast<uint8_t>(records[at]),
               attribute = static_cast<uint8_t>(records[at + 1]);
    uint16_t size = 0;
    if (format == kSizedFormat) std::memcpy(&size, records.data() + at + 2, sizeof size);
    at += 4;
    if (size > records.size() - at) return std::nullopt;
    uint32_t payload[2] = {};  // a symbol and a number
    if (size == sizeof payload) {
      std::memcpy(payload, records.data() + at, sizeof payload);
      const bool own = (attribute == kRegisterCount || attribute == kMinStackSize) &&
                       file.symbol(payload[0]) == kernel;
      if (own) (attribute == kRegisterCount ? found.registers : found.spill_bytes) = payload[1];
      has_registers |= own && attribute == kRegisterCount;
    }
    at += size;
  }
  if (!has_registers) return std::nullopt;
  if (const Section* shared = file.find(".nv.shared." + std::string(kernel))) {
    uint64_t bytes = shared->header.sh_size;
    if (file.find(kReservedSection) && bytes >= kReservedBytes) bytes -= kReservedBytes;
    found.shared_bytes = static_cast<int64_t>(bytes);
  }
  return found;
}

}  // namespace sinter
