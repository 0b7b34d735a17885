#include "runtime/cuda/kernel_cache.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "runtime/temporary_directory.h"

namespace sinter::kernel_cache_test {
namespace {

namespace fs = std::filesystem;

std::string value_of(size_t bytes, char seed) {
  std::string value(bytes, seed);
  for (size_t i = 0; i < bytes; ++i) value[i] = static_cast<char>(seed + i * 131);
  return value;
}

std::vector<fs::path> files_in(const std::string& directory) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(directory)) files.push_back(entry.path());
  return files;
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_file(const fs::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// Runs `act` in a process of its own; its exit status as waitpid gives it.
template <typename Act>
int in_child(Act act) {
  const pid_t child = fork();
  if (child == 0) _exit(act() ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

const CacheKey kKey = CacheKey::of({"source", "flags"});

TEST_CASE("an entry comes back as it was stored, and only under its key") {
  TemporaryDirectory temporary;
  const KernelCache cache(temporary.path() + "/deep/cache");
  CHECK_FALSE(cache.find(kKey));
  const std::string value = value_of(10000, 'a');
  CHECK(cache.store(kKey, value));
  CHECK(cache.find(kKey) == value);
  CHECK_FALSE(cache.find(CacheKey::of({"source", "other flags"})));
  CHECK(files_in(cache.directory()).size() == 1);
  struct stat status;
  REQUIRE(stat(cache.directory().c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0700);
  CHECK(cache.store(kKey, ""));
  CHECK(cache.find(kKey) == "");
}

TEST_CASE("text that moves from one part of the key to the next gives another key") {
  CHECK(CacheKey::of({"ab", "c"}).bytes != CacheKey::of({"a", "bc"}).bytes);
  CHECK(CacheKey::of({"abc"}).bytes != CacheKey::of({"abc", ""}).bytes);
  CHECK(CacheKey::of({"ab", "c"}).bytes == CacheKey::of({"ab", "c"}).bytes);
}

TEST_CASE("an entry cut short or made longer at any place is a miss") {
  TemporaryDirectory temporary;
  const KernelCache cache(temporary.path());
  REQUIRE(cache.store(kKey, value_of(40, 'b')));
  const fs::path file = files_in(cache.directory()).at(0);
  const std::string whole = read_file(file);
  for (size_t size = 0; size < whole.size(); ++size) {
    write_file(file, whole.substr(0, size));
    CAPTURE(size);
    CHECK_FALSE(cache.find(kKey));
  }
  write_file(file, whole + "x");
  CHECK_FALSE(cache.find(kKey));
  write_file(file, whole);
  CHECK(cache.find(kKey));
}

TEST_CASE("any single flipped bit is a miss, and storing again repairs the entry") {
  TemporaryDirectory temporary;
  const KernelCache cache(temporary.path());
  const std::string value = value_of(40, 'c');
  REQUIRE(cache.store(kKey, value));
  const fs::path file = files_in(cache.directory()).at(0);
  const std::string whole = read_file(file);
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    write_file(file, damaged);
    CAPTURE(bit);
    CHECK_FALSE(cache.find(kKey));
  }
  CHECK(cache.store(kKey, value));
  CHECK(cache.find(kKey) == value);
}

TEST_CASE("an entry under another entry's name is a miss") {
  TemporaryDirectory temporary;
  const KernelCache cache(temporary.path());
  const CacheKey other = CacheKey::of({"other"});
  REQUIRE(cache.store(other, "text"));
  const fs::path from = files_in(cache.directory()).at(0);
  REQUIRE(cache.store(kKey, "own"));
  for (const fs::path& file : files_in(cache.directory()))
    if (file != from) fs::copy_file(from, file, fs::copy_options::overwrite_existing);
  CHECK_FALSE(cache.find(kKey));
}

TEST_CASE("what others may write is not read, and links are not followed") {
  TemporaryDirectory temporary;
  const KernelCache cache(temporary.path());
  REQUIRE(cache.store(kKey, "text"));
  const fs::path file = files_in(cache.directory()).at(0);
  fs::permissions(file, fs::perms(0622));
  CHECK_FALSE(cache.find(kKey));
  fs::permissions(file, fs::perms(0600));
  CHECK(cache.find(kKey));
  fs::permissions(temporary.path(), fs::perms(0777));
  CHECK_FALSE(cache.find(kKey));
  CHECK_FALSE(cache.store(kKey, "text"));
  fs::permissions(temporary.path(), fs::perms(0700));
  fs::rename(file, file.string() + ".away");
  fs::create_symlink(file.string() + ".away", file);
  CHECK_FALSE(cache.find(kKey));
  fs::remove(file);
  REQUIRE(mkfifo(file.c_str(), 0600) == 0);
  CHECK_FALSE(cache.find(kKey));
  if (geteuid() == 0) {
    fs::remove(file);
    fs::rename(file.string() + ".away", file);
    REQUIRE(chown(file.c_str(), 65534, 65534) == 0);
    CHECK_FALSE(cache.find(kKey));
  }
}

TEST_CASE("a directory that cannot be written: uncached, no error") {
  TemporaryDirectory temporary;
  const std::string directory = temporary.path() + "/cache";
  REQUIRE(KernelCache(directory).store(kKey, "text"));
  CHECK(in_child([&] {
          // Permissions do not bind root.
          if (geteuid() == 0) {
            for (const std::string& path :
                 {temporary.path(), directory, files_in(directory)[0].string()})
              if (chown(path.c_str(), 65534, 65534) != 0) return false;
            if (seteuid(65534) != 0) return false;
          }
          if (chmod(directory.c_str(), 0500) != 0) return false;
          const KernelCache cache(directory);
          return cache.find(kKey) == "text" && !cache.store(kKey, "new") &&
                 cache.find(kKey) == "text" &&
                 !KernelCache(directory + "/below").store(kKey, "text") &&
                 cache.use()->entries == 1;
        }) == 0);
  write_file(temporary.path() + "/file", "");
  CHECK_FALSE(KernelCache(temporary.path() + "/file/cache").store(kKey, "text"));
  CHECK_FALSE(KernelCache("").store(kKey, "text"));
  CHECK_FALSE(KernelCache("").find(kKey));
}

TEST_CASE("a full disk: nothing is stored and nothing is left") {
  TemporaryDirectory temporary;
  const KernelCache cache(temporary.path());
  CHECK(in_child([&] {
          signal(SIGXFSZ, SIG_IGN);
          const rlimit limit{5000, 5000};
          setrlimit(RLIMIT_FSIZE, &limit);
          return !cache.store(kKey, value_of(100000, 'd')) && !cache.find(kKey);
        }) == 0);
  CHECK(files_in(cache.directory()).empty());
}

TEST_CASE("a writer killed half-way leaves a miss that the next writer fills") {
  TemporaryDirectory temporary;
  const KernelCache cache(temporary.path());
  const std::string value = value_of(100000, 'e');
  const int status = in_child([&] {
    signal(SIGXFSZ, SIG_DFL);
    const rlimit size{5000, 5000}, core{0, 0};
    setrlimit(RLIMIT_CORE, &core);
    setrlimit(RLIMIT_FSIZE, &size);
    return cache.store(kKey, value);
  });
  REQUIRE(WIFSIGNALED(status));
  // Where the file system has no files without names, one with the name of no entry.
  REQUIRE(files_in(cache.directory()).size() <= 1);
  for (const auto& file : files_in(cache.directory())) CHECK(file.extension() == ".tmp");
  CHECK_FALSE(cache.find(kKey));
  CHECK(cache.store(kKey, value));
  CHECK(cache.find(kKey) == value);
  CHECK(cache.use()->entries == 1);
  write_file(temporary.path() + "/notes.txt", "not ours");
  CHECK(cache.clear()->entries == 1);
  REQUIRE(files_in(cache.directory()).size() == 1);
  CHECK(files_in(cache.directory())[0].filename() == "notes.txt");
}

TEST_CASE("eight writers and a reader at once: a whole entry or none") {
  TemporaryDirectory temporary;
  const KernelCache cache(temporary.path() + "/cache");
  const auto value = [](int writer) { return value_of(20000 + 1000 * writer, char('a' + writer)); };
  std::vector<pid_t> writers;
  for (int writer = 0; writer < 8; ++writer) {
    const pid_t child = fork();
    if (child == 0) {
      bool stored = true;
      for (int i = 0; i < 50; ++i) stored = cache.store(kKey, value(writer)) && stored;
      _exit(stored ? 0 : 1);
    }
    writers.push_back(child);
  }
  const auto intact = [&](const std::string& found) {
    for (int writer = 0; writer < 8; ++writer)
      if (found == value(writer)) return true;
    return false;
  };
  size_t damaged = 0;
  for (int i = 0; i < 200; ++i)
    if (const auto found = cache.find(kKey)) damaged += !intact(*found);
  for (const pid_t writer : writers) {
    int status = -1;
    waitpid(writer, &status, 0);
    CHECK(status == 0);
  }
  CHECK(damaged == 0);
  REQUIRE(cache.find(kKey));
  CHECK(intact(*cache.find(kKey)));
  CHECK(files_in(cache.directory()).size() == 1);
}

TEST_CASE("the user's directory comes from the environment, absolute paths only") {
  const auto directory = [](const char* own, const char* xdg, const char* home) {
    const auto set = [](const char* name, const char* value) {
      value == nullptr ? unsetenv(name) : setenv(name, value, 1);
    };
    set("SINTER_CACHE_DIR", own);
    set("XDG_CACHE_HOME", xdg);
    set("HOME", home);
    return KernelCache::of_user().directory();
  };
  CHECK(directory("/own", "/xdg", "/home/u") == "/own");
  CHECK(directory(nullptr, "/xdg", "/home/u") == "/xdg/sinter");
  CHECK(directory("relative", "", "/home/u") == "/home/u/.cache/sinter");
  CHECK(directory(nullptr, nullptr, nullptr) == "");
}

TEST_CASE("above its limit a cache loses what was not used for longest") {
  TemporaryDirectory temporary;
  const auto key = [](char name) { return CacheKey::of({std::string_view(&name, 1)}); };
  const KernelCache cache(temporary.path() + "/cache", 4500);
  for (char name : {'a', 'b', 'c', 'd'}) {
    REQUIRE(cache.store(key(name), value_of(1000, name)));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  cache.trim();
  CHECK(cache.use()->entries == 4);
  REQUIRE(cache.find(key('a')));  // used, so that b is the oldest
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  REQUIRE(cache.store(key('e'), value_of(1000, 'e')));
  cache.trim();
  CHECK(cache.use()->bytes <= 4500 / 4 * 3);
  CHECK(cache.find(key('a')));
  CHECK(cache.find(key('e')));
  CHECK_FALSE(cache.find(key('b')));
  CHECK_FALSE(cache.find(key('c')));
  KernelCache(temporary.path() + "/none", 0).trim();
}

TEST_CASE("the limit comes from the environment") {
  const auto limit = [](const char* megabytes) {
    setenv("SINTER_CACHE_DIR", "/own", 1);
    megabytes == nullptr ? unsetenv("SINTER_CACHE_MEGABYTES")
                         : setenv("SINTER_CACHE_MEGABYTES", megabytes, 1);
    return KernelCache::of_user().limit();
  };
  CHECK(limit(nullptr) == kCacheBytes);
  CHECK(limit("5") == 5 << 20);
  CHECK(limit("0") == 0);
  for (const char* wrong : {"", "-1", "5x", "99999999999999999999"}) {
    CAPTURE(wrong);
    CHECK(limit(wrong) == kCacheBytes);
  }
  limit(nullptr);
}

TEST_CASE("a cache that does not exist is empty") {
  TemporaryDirectory temporary;
  const KernelCache cache(temporary.path() + "/none");
  CHECK(cache.use()->entries == 0);
  CHECK(cache.clear()->entries == 0);
}

}  // namespace
}  // namespace sinter::kernel_cache_test
