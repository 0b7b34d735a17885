// A fingerprint that tells large files apart without reading all of them.
#pragma once

#include <string>

#include "ir/error.h"

namespace sinter {

/// content_hash() of the file's size and of samples of it: all bytes of a file of at most 8 MiB,
/// else the first MiB, the last, and 1,024 pages of 4 KiB at even distances between. Weights that
/// were trained further differ in every sample; a single changed byte of a large file may go
/// unseen.
Result<std::string> sampled_fingerprint(const std::string& path);

}  // namespace sinter
