#include "runtime/library_imports.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

namespace sinter {
namespace {

/// The parts of a library's dynamic section that say which addresses the loader filled in.
struct Tables {
  const ElfW(Sym) * symbols = nullptr;
  const char* strings = nullptr;
  struct Relocations {
    const ElfW(Rela) * first = nullptr;
    size_t bytes = 0;
  } calls, data;  // addresses that calls jump through; pointers to functions
};

/// Only of a loader that has made the addresses in the dynamic section absolute, as glibc does.
Tables tables_of(const link_map& library) {
  Tables tables;
  bool with_addends = false;
  for (const ElfW(Dyn)* entry = library.l_ld; entry->d_tag != DT_NULL; ++entry) {
    const auto address = entry->d_un.d_ptr;
    if (address < library.l_addr && (entry->d_tag == DT_SYMTAB || entry->d_tag == DT_STRTAB ||
                                     entry->d_tag == DT_JMPREL || entry->d_tag == DT_RELA))
      return {};
    switch (entry->d_tag) {
      case DT_SYMTAB:
        tables.symbols = reinterpret_cast<const ElfW(Sym)*>(address);
        break;
      case DT_STRTAB:
        tables.strings = reinterpret_cast<const char*>(address);
        break;
      case DT_JMPREL:
        tables.calls.first = reinterpret_cast<const ElfW(Rela)*>(address);
        break;
      case DT_PLTRELSZ:
        tables.calls.bytes = entry->d_un.d_val;
        break;
      case DT_RELA:
        tables.data.first = reinterpret_cast<const ElfW(Rela)*>(address);
        break;
      case DT_RELASZ:
        tables.data.bytes = entry->d_un.d_val;
        break;
      case DT_PLTREL:
        with_addends = entry->d_un.d_val == DT_RELA;
        break;
    }
  }
  if (!with_addends) tables.calls = {};
  return tables;
}

bool holds_function_address(unsigned long type) {
#if defined(__x86_64__)
  return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT || type == R_X86_64_64;
#elif defined(__aarch64__)
  return type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT || type == R_AARCH64_ABS64;
#else
  return false;
#endif
}

/// Is the address in a segment that the loader made read-only after it had filled it in?
bool read_only_after_relocation(uintptr_t address) {
  struct Search {
    uintptr_t address;
    bool found = false;
  } search{address};
  dl_iterate_phdr(
      [](dl_phdr_info* library, size_t, void* data) {
        auto& search = *static_cast<Search*>(data);
        for (int i = 0; i < library->dlpi_phnum; ++i) {
          const ElfW(Phdr)& segment = library->dlpi_phdr[i];
          const uintptr_t begin = library->dlpi_addr + segment.p_vaddr;
          if (segment.p_type == PT_GNU_RELRO && search.address >= begin &&
              search.address < begin + segment.p_memsz)
            search.found = true;
        }
        return 0;
      },
      &search);
  return search.found;
}

bool write_address(uintptr_t where, void* value) {
  const auto page_bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  void* page = reinterpret_cast<void*>(where & ~(page_bytes - 1));
  const bool closed = read_only_after_relocation(where);
  if (closed && mprotect(page, page_bytes, PROT_READ | PROT_WRITE) != 0) return false;
  __atomic_store_n(reinterpret_cast<void**>(where), value, __ATOMIC_RELEASE);
  if (closed) mprotect(page, page_bytes, PROT_READ);
  return true;
}

}  // namespace

int replace_import(void* handle, const char* name, void* replacement) {
  link_map* library = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &library) != 0) return 0;
  const Tables tables = tables_of(*library);
  if (tables.symbols == nullptr || tables.strings == nullptr) return 0;
  int written = 0;
  for (const Tables::Relocations& table : {tables.calls, tables.data}) {
    if (table.first == nullptr) continue;
    for (size_t i = 0; i < table.bytes / sizeof(ElfW(Rela)); ++i) {
      const ElfW(Rela)& relocation = table.first[i];
      const ElfW(Sym)& symbol = tables.symbols[ELF64_R_SYM(relocation.r_info)];
      if (holds_function_address(ELF64_R_TYPE(relocation.r_info)) && symbol.st_shndx == SHN_UNDEF &&
          std::strcmp(tables.strings + symbol.st_name, name) == 0)
        written += write_address(library->l_addr + relocation.r_offset, replacement);
    }
  }
  return written;
}

}  // namespace sinter
