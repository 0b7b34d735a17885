#include "codegen/emission/packed_matrix.h"

#include "codegen/emission/emit_scalar.h"

namespace sinter {

std::string packed_matrix(const CodeFormat& format, int64_t length) {
  const std::string values =
      fmt::format("codes::{}, {}, {}", code_info(format.code).name, format.bits(), format.group);
  const std::string parts = format.part_bits == 0 ? "" : fmt::format(", {}", format.part_bits);
  return fmt::format("PackedMatrix<{}, {}, {}, {}, {}{}>", values, memory_type(format.scale),
                     format.zeros, format.minima, length, parts);
}

}  // namespace sinter
