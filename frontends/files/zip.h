// The directory of a zip archive (also zip64), and its records as they are written. Nothing is
// extracted: a member is a range of the file's bytes.
#pragma once

#include <vector>

#include "frontends/files/bounded_file.h"

namespace sinter {

/// Whether a file that begins so is a zip archive, perhaps without members.
bool starts_zip(std::string_view bytes);

struct ZipMember {
  std::string name;
  uint32_t crc = 0;
  uint64_t begin = 0, end = 0;  // of its bytes in the file
};

/// All members, by their place in the file, none inside another one. Errors: an archive in several
/// parts, a member that is encrypted or compressed, records that leave the file or contradict each
/// other.
Result<std::vector<ZipMember>> read_zip_directory(const BoundedFile& file);

/// The record before a member's bytes. All records have the zip64 form, whatever the sizes.
std::string zip_local_header(const std::string& name, uint32_t crc, uint64_t size);

/// The records after the last member; they stand at byte `begin`.
std::string zip_directory(const std::vector<ZipMember>& members, uint64_t begin);

}  // namespace sinter
