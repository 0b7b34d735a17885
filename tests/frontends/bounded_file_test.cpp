#include "frontends/files/bounded_file.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "frontends/files/atomic_file.h"
#include "frontends/small_files.h"

namespace sinter::bounded_file_test {
namespace {

std::string read_at(const BoundedFile& file, uint64_t offset, size_t count) {
  std::string text(count, '?');
  REQUIRE(file.read(offset, std::as_writable_bytes(std::span(text))));
  return text;
}

Status try_read(const BoundedFile& file, uint64_t offset, size_t count) {
  std::string text(count, '?');
  return file.read(offset, std::as_writable_bytes(std::span(text)));
}

}  // namespace

TEST_CASE("bounded_file: ranges are read where they are") {
  ScratchFolder folder;
  auto file = BoundedFile::open(folder.write("a.txt", "0123456789"));
  REQUIRE(file);
  CHECK(file->size() == 10);
  CHECK(read_at(*file, 3, 4) == "3456");
  CHECK(read_at(*file, 10, 0).empty());
  CHECK(*file->read_all(10) == "0123456789");
}

TEST_CASE("bounded_file: a range that leaves the file is refused with both sizes") {
  ScratchFolder folder;
  auto file = BoundedFile::open(folder.write("a.txt", "0123456789"));
  REQUIRE(file);
  check_error(try_read(*file, 7, 4), {"a.txt", "7+4", "10 bytes"});
  check_error(try_read(*file, UINT64_MAX, 4), {"a.txt", "18446744073709551615"});
  check_error(file->read_all(9), {"a.txt", "10 bytes", "at most 9"});
}

TEST_CASE("bounded_file: symbolic links are followed to files only") {
  ScratchFolder folder;
  folder.write("blob", "abc");
  REQUIRE(::symlink("blob", folder.path("link").c_str()) == 0);
  auto file = BoundedFile::open(folder.path("link"));
  REQUIRE(file);
  CHECK(read_at(*file, 0, 3) == "abc");

  REQUIRE(::symlink(".", folder.path("to_folder").c_str()) == 0);
  check_error(BoundedFile::open(folder.path("to_folder")), {"to_folder", "a folder"});
  REQUIRE(::symlink("nowhere", folder.path("dangling").c_str()) == 0);
  check_error(BoundedFile::open(folder.path("dangling")), {"dangling", "does not exist"});
  REQUIRE(::symlink("loop", folder.path("loop").c_str()) == 0);
  check_error(BoundedFile::open(folder.path("loop")), {"loop", "cannot open"});
  // A name whose file cannot be opened is no missing one.
  CHECK(path_exists(folder.path("dangling")));
  CHECK(path_exists(folder.path("loop") + "/config.json"));
  CHECK_FALSE(path_exists(folder.path("nothing")));
  CHECK_FALSE(path_exists(folder.path("blob") + "/config.json"));
}

TEST_CASE("bounded_file: folders, FIFOs, sockets and devices are refused without blocking") {
  ScratchFolder folder;
  check_error(BoundedFile::open(folder.path()), {folder.path(), "a folder"});
  REQUIRE(::mkfifo(folder.path("fifo").c_str(), 0600) == 0);
  check_error(BoundedFile::open(folder.path("fifo")), {"fifo", "a FIFO"});
  REQUIRE(::symlink("fifo", folder.path("to_fifo").c_str()) == 0);
  check_error(BoundedFile::open(folder.path("to_fifo")), {"to_fifo", "a FIFO"});
  check_error(BoundedFile::open("/dev/zero"), {"/dev/zero", "a device"});

  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, folder.path("socket").c_str(), sizeof address.sun_path - 1);
  int descriptor = ::socket(AF_UNIX, SOCK_STREAM, 0);
  REQUIRE(::bind(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  check_error(BoundedFile::open(folder.path("socket")), {"socket"});
  ::close(descriptor);
}

TEST_CASE("bounded_file: a missing file and a path with a zero byte") {
  ScratchFolder folder;
  folder.write("a", "x");
  check_error(BoundedFile::open(folder.path("b")), {folder.path("b"), "cannot open"});
  check_error(BoundedFile::open(folder.path("a") + std::string("\0b", 2)), {"zero byte"});
}

TEST_CASE("bounded_file: a file that shrinks, grows or is rewritten is an error") {
  ScratchFolder folder;
  const std::string path = folder.write("a.bin", std::string(100, 'x'));
  auto shrunk = BoundedFile::open(path);
  REQUIRE(shrunk);
  REQUIRE(::truncate(path.c_str(), 40) == 0);
  check_error(try_read(*shrunk, 50, 10), {"a.bin", "had 100 bytes", "now has 40"});
  check_error(try_read(*shrunk, 0, 10), {"a.bin", "had 100 bytes", "now has 40"});

  auto grown = BoundedFile::open(path);
  REQUIRE(grown);
  REQUIRE(::truncate(path.c_str(), 41) == 0);
  check_error(try_read(*grown, 0, 10), {"had 40 bytes", "now has 41"});

  auto rewritten = BoundedFile::open(path);
  REQUIRE(rewritten);
  const timespec times[2] = {{1, 0}, {1, 0}};
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
  check_error(try_read(*rewritten, 0, 10), {"a.bin", "written to"});
}

TEST_CASE("bounded_file: an open file stays readable when another takes its name") {
  ScratchFolder folder;
  auto file = BoundedFile::open(folder.write("a", "old"));
  REQUIRE(file);
  std::filesystem::rename(folder.write("b", "new!"), folder.path("a"));
  CHECK(read_at(*file, 0, 3) == "old");
}

TEST_CASE("bounded_file: what stands in a model's place is named") {
  ScratchFolder folder;
  const auto refusal = [&](std::string_view bytes) {
    auto file = BoundedFile::open(folder.write("model", bytes));
    REQUIRE(file);
    return refuse_impostor(*file);
  };
  check_error(refusal(""), {"model", "empty"});
  check_error(refusal("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n"),
              {"model", "git-lfs pointer", "git lfs pull"});
  check_error(refusal("\n <!DOCTYPE html><html>"), {"model", "web page"});
  check_error(refusal("<HTML><body>404</body></html>"), {"model", "web page"});
  check_error(refusal("<?xml version=\"1.0\"?><Error/>"), {"model", "XML"});
  check_error(refusal("PK\x03\x04zip"),
              {"model", "zip archive, as PyTorch and NumPy", "safetensors"});
  check_error(refusal("GGUF\x03"), {"model", "GGUF"});
  CHECK(refusal("{}"));
  CHECK(refusal("<"));
}

TEST_CASE("atomic_file: nothing is left without a commit, everything is there after it") {
  ScratchFolder folder;
  const std::string path = folder.write("out", "before");
  {
    auto file = AtomicFile::create(path);
    REQUIRE(file);
    REQUIRE(file->write(std::as_bytes(std::span("after", 5))));
  }
  CHECK(bytes_of(path) == "before");
  {
    auto file = AtomicFile::create(path);
    REQUIRE(file);
    REQUIRE(file->write(std::as_bytes(std::span("after", 5))));
    REQUIRE(file->commit());
  }
  CHECK(bytes_of(path) == "after");
  auto names = std::filesystem::directory_iterator(folder.path());
  CHECK(std::distance(begin(names), end(names)) == 1);
}

TEST_CASE("atomic_file: a link keeps leading to its file; devices and bad folders are refused") {
  ScratchFolder folder;
  folder.write("target", "before");
  REQUIRE(::symlink("target", folder.path("link").c_str()) == 0);
  auto file = AtomicFile::create(folder.path("link"));
  REQUIRE(file);
  REQUIRE(file->commit());
  CHECK(std::filesystem::is_symlink(folder.path("link")));
  CHECK(bytes_of(folder.path("target")).empty());

  check_error(AtomicFile::create("/dev/null"), {"/dev/null", "no regular file"});
  check_error(AtomicFile::create(folder.path()), {folder.path(), "no regular file"});
  check_error(AtomicFile::create(folder.path("none/out")), {"none/out", "cannot write"});
}

}  // namespace sinter::bounded_file_test
