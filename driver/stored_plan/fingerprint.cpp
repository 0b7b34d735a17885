#include "driver/stored_plan/fingerprint.h"

#include "frontends/files/bounded_file.h"
#include "plan/plan_file.h"

namespace sinter {

Result<std::string> sampled_fingerprint(const std::string& path) {
  constexpr uint64_t kWhole = uint64_t{8} << 20, kEnd = uint64_t{1} << 20, kPage = 4096,
                     kPages = 1024;
  SINTER_LET(file, BoundedFile::open(path));
  std::string samples = fmt::format("{}\n", file.size());
  const auto add = [&](uint64_t offset, uint64_t bytes) {
    const size_t at = samples.size();
    samples.resize(at + bytes);
    return file.read(offset, std::as_writable_bytes(std::span(samples).subspan(at)));
  };
  if (file.size() <= kWhole) {
    SINTER_TRY(add(0, file.size()));
    return content_hash(samples);
  }
  const uint64_t distance = (file.size() - 2 * kEnd) / kPages;  // more than a page
  SINTER_TRY(add(0, kEnd));
  for (uint64_t i = 0; i < kPages; ++i) SINTER_TRY(add(kEnd + i * distance, kPage));
  SINTER_TRY(add(file.size() - kEnd, kEnd));
  return content_hash(samples);
}

}  // namespace sinter
