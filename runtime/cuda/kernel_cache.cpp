#include "runtime/cuda/kernel_cache.h"

#define XXH_INLINE_ALL
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <tuple>
#include <vector>

namespace sinter {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kVersion = 1;
constexpr uint64_t kMaximumBytes = uint64_t{1} << 28;  // of one entry; a cubin has some 10 KB
constexpr std::string_view kEntrySuffix = ".cubin";
constexpr std::string_view kTemporarySuffix = ".tmp";

// The header before an entry's bytes, in the byte order of the machine: a cache stays on its
// machine, and in another byte order the magic number differs.
struct Header {
  uint64_t magic = 0x6b2e7265746e6973;  // "sinter.k"
  uint32_t version = kVersion;
  uint32_t reserved = 0;
  std::array<uint8_t, 16> key = {};
  uint64_t bytes = 0;
  uint64_t checksum = 0;  // xxh3-64 of the bytes
  bool operator==(const Header&) const = default;
};
static_assert(sizeof(Header) == 48, "no padding: the header is written as it lies in memory");

Header header_of(const CacheKey& key, std::string_view value) {
  Header header;
  header.key = key.bytes;
  header.bytes = value.size();
  header.checksum = XXH3_64bits(value.data(), value.size());
  return header;
}

// Owns a file descriptor.
struct File {
  int descriptor;
  ~File() {
    if (descriptor >= 0) close(descriptor);
  }
};

bool read_all(int descriptor, char* out, size_t bytes) {
  while (bytes > 0) {
    const ssize_t got = read(descriptor, out, bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    out += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

bool write_all(int descriptor, const char* in, size_t bytes) {
  while (bytes > 0) {
    const ssize_t put = write(descriptor, in, bytes);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    in += put;
    bytes -= static_cast<size_t>(put);
  }
  return true;
}

// Nobody but this user can have written it.
bool trusted(const struct stat& status) {
  return status.st_uid == geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool trusted_directory(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && trusted(status);
}

// Creates the directory for this user alone, and its parents as the umask says.
bool make_directory(const std::string& path) {
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  return mkdir(path.c_str(), 0700) == 0 || errno == EEXIST;
}

bool is_hexadecimal(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// Calls `visit(entry, whether it is complete)` for each file that store() makes.
template <typename Visit>
Status for_each_entry(const std::string& directory, Visit visit) {
  if (directory.empty()) return {};
  std::error_code error;
  fs::directory_iterator it(directory, error), end;
  for (; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.size() < 32 || !is_hexadecimal(std::string_view(name).substr(0, 32))) continue;
    const std::string_view rest = std::string_view(name).substr(32);
    const bool complete = rest == kEntrySuffix;
    if (complete || (rest.starts_with('.') && rest.ends_with(kTemporarySuffix)))
      visit(*it, complete);
  }
  if (error && error != std::errc::no_such_file_or_directory)
    return fail(fmt::format("the kernel cache cannot be listed: {}", error.message()), directory,
                "set SINTER_CACHE_DIR to a directory of your own", ExitCode::device);
  return {};
}

}  // namespace

CacheKey CacheKey::of(llvm::ArrayRef<std::string_view> parts) {
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  for (std::string_view part : parts) {
    const uint64_t bytes = part.size();
    XXH3_128bits_update(&state, &bytes, sizeof bytes);
    XXH3_128bits_update(&state, part.data(), part.size());
  }
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&state));
  CacheKey key;
  std::memcpy(key.bytes.data(), canonical.digest, key.bytes.size());
  return key;
}

namespace {

uint64_t limit_of_user() {
  const char* text = std::getenv("SINTER_CACHE_MEGABYTES");
  uint64_t megabytes = 0;
  if (text == nullptr) return kCacheBytes;
  const char* end = text + std::strlen(text);
  const auto [at, error] = std::from_chars(text, end, megabytes);
  const bool fits = error == std::errc() && at == end && megabytes <= UINT64_MAX >> 20;
  return fits ? megabytes << 20 : kCacheBytes;
}

}  // namespace

KernelCache KernelCache::of_user() {
  const auto absolute = [](const char* variable) {
    const char* value = std::getenv(variable);
    return std::string(value != nullptr && *value == '/' ? value : "");
  };
  if (std::string own = absolute("SINTER_CACHE_DIR"); !own.empty())
    return KernelCache(own, limit_of_user());
  if (std::string xdg = absolute("XDG_CACHE_HOME"); !xdg.empty())
    return KernelCache(xdg + "/sinter", limit_of_user());
  if (std::string home = absolute("HOME"); !home.empty())
    return KernelCache(home + "/.cache/sinter", limit_of_user());
  return KernelCache("");
}

std::string KernelCache::entry_path(const CacheKey& key) const {
  std::string path = directory_ + "/";
  for (uint8_t byte : key.bytes) path += fmt::format("{:02x}", byte);
  return path;
}

std::optional<std::string> KernelCache::find(const CacheKey& key) const {
  if (directory_.empty() || !trusted_directory(directory_)) return std::nullopt;
  const std::string path = entry_path(key) + std::string(kEntrySuffix);
  // O_NONBLOCK: a pipe in an entry's place does not hang the run.
  const File file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)};
  struct stat status;
  if (file.descriptor < 0 || fstat(file.descriptor, &status) != 0 || !S_ISREG(status.st_mode) ||
      !trusted(status))
    return std::nullopt;
  Header stored;
  const uint64_t size = static_cast<uint64_t>(status.st_size);
  if (size < sizeof stored || size > sizeof stored + kMaximumBytes) return std::nullopt;
  std::string value(size - sizeof stored, '\0');
  if (!read_all(file.descriptor, reinterpret_cast<char*>(&stored), sizeof stored) ||
      !read_all(file.descriptor, value.data(), value.size()) || stored != header_of(key, value))
    return std::nullopt;
  futimens(file.descriptor, nullptr);  // used now; trim() asks
  return value;
}

bool KernelCache::store(const CacheKey& key, std::string_view value) const {
  if (directory_.empty() || value.size() > kMaximumBytes) return false;
  if (!make_directory(directory_) || !trusted_directory(directory_)) return false;
  const std::string entry = entry_path(key) + std::string(kEntrySuffix);
  const Header header = header_of(key, value);
  const auto write_entry = [&](int file) {
    return write_all(file, reinterpret_cast<const char*>(&header), sizeof header) &&
           write_all(file, value.data(), value.size()) && fsync(file) == 0;
  };
  // A file without a name: a process that is killed leaves nothing.
  if (const File file{open(directory_.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600)};
      file.descriptor >= 0) {
    if (!write_entry(file.descriptor)) return false;
    const std::string link = fmt::format("/proc/self/fd/{}", file.descriptor);
    const auto give_name = [&](const std::string& name) {
      return linkat(AT_FDCWD, link.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
    };
    if (give_name(entry)) return true;
    if (errno == EEXIST) {  // a damaged entry is replaced, and one that was stored just now
      const std::string temporary =
          fmt::format("{}.{}.{}{}", entry_path(key), getpid(), file.descriptor, kTemporarySuffix);
      unlink(temporary.c_str());  // of a process that had this one's number
      return give_name(temporary) && rename(temporary.c_str(), entry.c_str()) == 0;
    }
    if (errno != ENOENT) return false;
  }
  // No such files here, or no /proc to name them by.
  std::string temporary = entry_path(key) + ".XXXXXX" + std::string(kTemporarySuffix);
  const File file{
      mkostemps(temporary.data(), static_cast<int>(kTemporarySuffix.size()), O_CLOEXEC)};
  if (file.descriptor < 0) return false;
  const bool stored = write_entry(file.descriptor) && rename(temporary.c_str(), entry.c_str()) == 0;
  if (!stored) unlink(temporary.c_str());
  return stored;
}

Result<CacheUse> KernelCache::use() const {
  CacheUse use;
  SINTER_TRY(for_each_entry(directory_, [&](const fs::directory_entry& entry, bool complete) {
    std::error_code error;
    const uint64_t bytes = entry.file_size(error);
    if (!complete || error) return;
    ++use.entries;
    use.bytes += bytes;
  }));
  return use;
}

void KernelCache::trim() const {
  struct Entry {
    fs::file_time_type used;
    fs::path path;
    uint64_t bytes;
  };
  std::vector<Entry> entries;
  uint64_t left = 0;
  const Status listed =
      for_each_entry(directory_, [&](const fs::directory_entry& entry, bool complete) {
        std::error_code size_error, time_error;
        const uint64_t bytes = entry.file_size(size_error);
        const fs::file_time_type used = entry.last_write_time(time_error);
        if (!complete || size_error || time_error) return;
        entries.push_back({used, entry.path(), bytes});
        left += bytes;
      });
  if (!listed || left <= limit_) return;
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.used, a.path) < std::tie(b.used, b.path);
  });
  for (const Entry& entry : entries) {
    if (left <= limit_ / 4 * 3) return;
    std::error_code error;
    if (fs::remove(entry.path, error)) left -= entry.bytes;
  }
}

Result<CacheUse> KernelCache::clear() const {
  CacheUse removed;
  SINTER_TRY(for_each_entry(directory_, [&](const fs::directory_entry& entry, bool complete) {
    std::error_code size_error, error;
    const uint64_t bytes = entry.file_size(size_error);
    if (!fs::remove(entry.path(), error) || error || !complete) return;
    ++removed.entries;
    if (!size_error) removed.bytes += bytes;
  }));
  return removed;
}

}  // namespace sinter
