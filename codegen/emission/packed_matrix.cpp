#include "codegen/emission/packed_matrix.h"

#include "codegen/emission/emit_scalar.h"

namespace sinter {

std::string packed_matrix(const CodeFormat& format, int64_t length) {
  return fmt::format("PackedMatrix<codes::{}, {}, {}, {}, {}, {}, {}>", code_info(format.code).name,
                     format.bits(), format.group, memory_type(format.scale), format.zeros,
                     format.minima, length);
}

}  // namespace sinter
