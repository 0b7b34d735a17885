// Compiled kernels on disk. A file that is not certainly what was stored is a miss, and a directory
// that cannot be written leaves everything working, only uncached: nothing here fails a run.
#pragma once

#include <llvm/ADT/ArrayRef.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ir/error.h"

namespace sinter {

/// xxh3-128 of everything that a compilation depends on.
struct CacheKey {
  std::array<uint8_t, 16> bytes;
  /// Over the parts with their lengths, so that text cannot move from one part to the next.
  static CacheKey of(llvm::ArrayRef<std::string_view> parts);
};

/// The figures that `sinter cache status` shows.
struct CacheUse {
  uint64_t entries = 0;
  uint64_t bytes = 0;
};

/// The most bytes of a cache if the user sets no other limit.
inline constexpr uint64_t kCacheBytes = uint64_t{1} << 30;

class KernelCache {
 public:
  /// The user's: $SINTER_CACHE_DIR, else $XDG_CACHE_HOME/sinter, else $HOME/.cache/sinter. With
  /// none of them set nothing is cached. Relative paths count as not set, as XDG asks. Its limit is
  /// $SINTER_CACHE_MEGABYTES, a whole number, else kCacheBytes.
  static KernelCache of_user();

  /// `directory` is created on the first store; empty: nothing is cached.
  explicit KernelCache(std::string directory, uint64_t limit = kCacheBytes)
      : directory_(std::move(directory)), limit_(limit) {}

  const std::string& directory() const { return directory_; }
  uint64_t limit() const { return limit_; }  // bytes of all entries, as trim() leaves them

  /// The bytes stored under `key`, if the entry is intact, belongs to this user, and nobody else
  /// may write it. The entry counts as used now.
  std::optional<std::string> find(const CacheKey& key) const;

  /// Writes an entry beside its place, syncs it and renames it there; whoever reads or writes at
  /// the same time sees a whole entry or none. False: it could not be stored.
  bool store(const CacheKey& key, std::string_view value) const;

  /// Entries now stored. A directory that is not there is empty; one that cannot be read is an
  /// error.
  Result<CacheUse> use() const;

  /// Where the entries have more bytes than the limit, removes those that were not used for longest
  /// until three quarters of it are left. What cannot be removed stays.
  void trim() const;

  /// Removes entries and what interrupted writers left; other files stay. Says what was removed.
  Result<CacheUse> clear() const;

 private:
  std::string entry_path(const CacheKey& key) const;

  std::string directory_;
  uint64_t limit_;
};

}  // namespace sinter
