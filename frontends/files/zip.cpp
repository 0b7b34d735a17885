#include "frontends/files/zip.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <tuple>

namespace sinter {
namespace {

static_assert(std::endian::native == std::endian::little, "records are little-endian");

constexpr std::string_view local_magic = "PK\x03\x04", central_magic = "PK\x01\x02",
                           end_magic = "PK\x05\x06", end64_magic = "PK\x06\x06",
                           locator_magic = "PK\x06\x07";
// Bytes of the records without names, further fields and comments.
constexpr size_t local_bytes = 30, central_bytes = 46, end_bytes = 22, end64_bytes = 56,
                 locator_bytes = 20;
constexpr uint64_t max_directory_bytes = 100'000'000;  // as of a safetensors header
constexpr uint16_t wide_number = 1;                    // of the extra field with 64-bit sizes
constexpr uint16_t names_are_utf8 = 1 << 11, encrypted = 1;
constexpr uint32_t in_extra = std::numeric_limits<uint32_t>::max();  // a size that stands there
constexpr const char* rewrite_archive = "write the archive again with numpy.savez";

template <typename T>
T zip_number(std::string_view bytes, size_t at) {
  T value;
  SINTER_CHECK(at + sizeof value <= bytes.size(), "byte {} of {}", at, bytes.size());
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

/// Appends the numbers, each in the bytes of its own type.
template <typename... T>
void append_numbers(std::string& bytes, T... values) {
  (bytes.append(reinterpret_cast<const char*>(&values), sizeof values), ...);
}

Result<std::string> read_bytes(const BoundedFile& file, uint64_t begin, uint64_t size) {
  std::string text(size, '\0');
  SINTER_TRY(file.read(begin, std::as_writable_bytes(std::span(text))));
  return text;
}

/// Where the directory is, and how many records it has.
struct ZipDirectory {
  uint64_t count = 0, begin = 0, size = 0;
  uint64_t limit = 0;  // the byte where it must end
};

/// The end record stands at the file's end, before a comment of a known length.
Result<uint64_t> find_end(const BoundedFile& file) {
  constexpr uint64_t longest = end_bytes + std::numeric_limits<uint16_t>::max();
  const uint64_t size = std::min(file.size(), longest), begin = file.size() - size;
  SINTER_LET(tail, read_bytes(file, begin, size));
  for (size_t at = tail.size() < end_bytes ? 0 : tail.size() - end_bytes + 1; at-- > 0;)
    if (std::string_view(tail).substr(at).starts_with(end_magic) &&
        at + end_bytes + zip_number<uint16_t>(tail, at + 20) == tail.size())
      return begin + at;
  return fail("the zip archive has no directory at its end: it is truncated", file.path(),
              rewrite_archive);
}

tl::unexpected<Error> zip_in_parts(const BoundedFile& file) {
  return fail("the zip archive is one of several parts", file.path(), rewrite_archive);
}

/// The 64-bit end record before the end record at `end`, if there is one.
Result<std::optional<ZipDirectory>> find_wide_directory(const BoundedFile& file, uint64_t end) {
  if (end < locator_bytes) return std::nullopt;
  SINTER_LET(locator, read_bytes(file, end - locator_bytes, locator_bytes));
  if (!locator.starts_with(locator_magic)) return std::nullopt;
  const auto at = zip_number<uint64_t>(locator, 8);
  const uint64_t locator_at = end - locator_bytes;
  if (locator_at < end64_bytes || at > locator_at - end64_bytes)
    return fail(fmt::format("the zip64 end record is at byte {}, expected it before byte {}", at,
                            locator_at),
                file.path(), rewrite_archive);
  SINTER_LET(record, read_bytes(file, at, end64_bytes));
  if (!record.starts_with(end64_magic))
    return fail(fmt::format("there is no zip64 end record at byte {}", at), file.path(),
                rewrite_archive);
  if (zip_number<uint32_t>(record, 16) != 0 || zip_number<uint32_t>(record, 20) != 0)
    return zip_in_parts(file);
  return ZipDirectory{zip_number<uint64_t>(record, 32), zip_number<uint64_t>(record, 48),
                      zip_number<uint64_t>(record, 40), at};
}

Result<ZipDirectory> find_directory(const BoundedFile& file) {
  SINTER_LET(end, find_end(file));
  SINTER_LET(wide, find_wide_directory(file, end));
  ZipDirectory found;
  if (wide) {
    found = *wide;
  } else {
    SINTER_LET(record, read_bytes(file, end, end_bytes));
    if (zip_number<uint16_t>(record, 4) != 0 || zip_number<uint16_t>(record, 6) != 0)
      return zip_in_parts(file);
    found = {zip_number<uint16_t>(record, 10), zip_number<uint32_t>(record, 16),
             zip_number<uint32_t>(record, 12), end};
  }
  if (found.begin > found.limit || found.size != found.limit - found.begin)
    return fail(fmt::format("the zip directory has {} bytes from byte {} on, expected it to end at "
                            "byte {}",
                            found.size, found.begin, found.limit),
                file.path(), rewrite_archive);
  if (found.size > max_directory_bytes)
    return fail(fmt::format("the zip directory has {} bytes, at most {} are read", found.size,
                            max_directory_bytes),
                file.path(), rewrite_archive);
  if (found.count > found.size / central_bytes)
    return fail(fmt::format("the zip directory says {} members, its {} bytes hold at most {}",
                            found.count, found.size, found.size / central_bytes),
                file.path(), rewrite_archive);
  return found;
}

/// A member as the directory describes it; `begin`: where its local header begins.
struct ZipRecord {
  ZipMember member;
  uint64_t size = 0;
};

/// Takes the 64-bit values of the fields that refer to the extra field, in their order.
Status take_wide(std::string_view extra, std::initializer_list<uint64_t*> fields) {
  std::string_view wide;
  while (extra.size() >= 4) {
    const auto size = zip_number<uint16_t>(extra, 2);
    if (size > extra.size() - 4) break;
    if (zip_number<uint16_t>(extra, 0) == wide_number) wide = extra.substr(4, size);
    extra.remove_prefix(4 + size_t{size});
  }
  for (uint64_t* field : fields) {
    if (*field != in_extra) continue;
    if (wide.size() < sizeof(uint64_t)) return fail("the 64-bit sizes are missing");
    *field = zip_number<uint64_t>(wide, 0);
    wide.remove_prefix(sizeof(uint64_t));
  }
  return {};
}

/// Fails, without a place, if the member's bytes are not the tensor's file as it is.
Status check_zip_stored(std::string_view record, uint64_t packed, uint64_t size) {
  const auto flags = zip_number<uint16_t>(record, 8), method = zip_number<uint16_t>(record, 10);
  if (flags & encrypted) return fail("the member is encrypted", {}, rewrite_archive);
  if (method == 8)
    return fail("the member is compressed (deflate), expected it stored", {},
                "write it with numpy.savez, not numpy.savez_compressed");
  if (method != 0)
    return fail(fmt::format("the member is compressed (method {}), expected it stored", method), {},
                rewrite_archive);
  if (packed != size)
    return fail(fmt::format("the stored member has {} bytes and {} unpacked", packed, size), {},
                rewrite_archive);
  return {};
}

Status check_zip_name(std::string_view name, bool is_utf8) {
  const bool is_ascii = std::none_of(name.begin(), name.end(), [](char c) { return c & 0x80; });
  if (!is_utf8 && !is_ascii) return fail("the member's name is not UTF-8", {}, rewrite_archive);
  return {};
}

/// The first record of `rest`, which it is taken from.
Result<ZipRecord> take_record(std::string_view& rest) {
  if (rest.size() < central_bytes || !rest.starts_with(central_magic))
    return fail("expected another member's record in the zip directory", {}, rewrite_archive);
  const size_t name_size = zip_number<uint16_t>(rest, 28),
               extra_size = zip_number<uint16_t>(rest, 30),
               comment_size = zip_number<uint16_t>(rest, 32);
  if (name_size + extra_size + comment_size > rest.size() - central_bytes)
    return fail("a member's record leaves the zip directory", {}, rewrite_archive);
  const std::string_view name = rest.substr(central_bytes, name_size);
  ZipRecord record{{std::string(name), zip_number<uint32_t>(rest, 16), 0, 0}, 0};
  uint64_t packed = zip_number<uint32_t>(rest, 20);
  record.size = zip_number<uint32_t>(rest, 24);
  record.member.begin = zip_number<uint32_t>(rest, 42);
  const Status known = [&]() -> Status {
    SINTER_TRY(check_zip_name(name, zip_number<uint16_t>(rest, 8) & names_are_utf8));
    SINTER_TRY(take_wide(rest.substr(central_bytes + name_size, extra_size),
                         {&record.size, &packed, &record.member.begin}));
    return check_zip_stored(rest, packed, record.size);
  }();
  if (!known)
    return fail(fmt::format("\"{}\": {}", printable(name), known.error().what), {},
                known.error().hint.empty() ? rewrite_archive : known.error().hint);
  rest.remove_prefix(central_bytes + name_size + extra_size + comment_size);
  return record;
}

/// The member's bytes, which its local header stands before.
Result<ZipMember> locate(const BoundedFile& file, ZipRecord record, uint64_t limit) {
  ZipMember& member = record.member;
  const std::string shown = printable(member.name);
  if (member.begin > limit || limit - member.begin < local_bytes)
    return fail(fmt::format("\"{}\" begins at byte {}, the zip directory at byte {}", shown,
                            member.begin, limit),
                file.path(), rewrite_archive);
  SINTER_LET(header, read_bytes(file, member.begin, local_bytes));
  const uint64_t room = limit - member.begin - local_bytes;
  const uint64_t name_size = zip_number<uint16_t>(header, 26),
                 extra_size = zip_number<uint16_t>(header, 28);
  if (!header.starts_with(local_magic) || name_size > room)
    return fail(fmt::format("\"{}\" has no header at byte {}", shown, member.begin), file.path(),
                rewrite_archive);
  SINTER_LET(name, read_bytes(file, member.begin + local_bytes, name_size));
  if (name != member.name)
    return fail(fmt::format("\"{}\" is called \"{}\" in its own header", shown, printable(name)),
                file.path(), rewrite_archive);
  if (name_size + extra_size > room || record.size > room - name_size - extra_size)
    return fail(fmt::format("\"{}\" has {} bytes, {} are there before the zip directory", shown,
                            record.size, room - std::min(room, name_size + extra_size)),
                file.path(), rewrite_archive);
  member.begin += local_bytes + name_size + extra_size;
  member.end = member.begin + record.size;
  return std::move(member);
}

/// No byte belongs to two members: an archive of a few bytes would otherwise stand for many.
Status check_apart(std::vector<ZipMember>& members, const std::string& path) {
  std::sort(members.begin(), members.end(), [](const ZipMember& a, const ZipMember& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  for (size_t i = 1; i < members.size(); ++i)
    if (members[i].begin < members[i - 1].end + local_bytes)
      return fail(fmt::format("\"{}\" begins at byte {}, inside \"{}\" which ends at {}",
                              printable(members[i].name), members[i].begin,
                              printable(members[i - 1].name), members[i - 1].end),
                  path, rewrite_archive);
  return {};
}

uint16_t zip_flags(const std::string& name) {
  return check_zip_name(name, false) ? 0 : names_are_utf8;
}

constexpr uint16_t zip_version = 45, made_on_unix = 3 << 8;  // 4.5: with zip64
constexpr uint32_t no_zip_time = 0x0021'0000;  // 1 January 1980, the first that there is

}  // namespace

bool starts_zip(std::string_view bytes) {
  return bytes.starts_with(local_magic) || bytes.starts_with(end_magic) ||
         bytes.starts_with(end64_magic);
}

Result<std::vector<ZipMember>> read_zip_directory(const BoundedFile& file) {
  SINTER_LET(directory, find_directory(file));
  SINTER_LET(text, read_bytes(file, directory.begin, directory.size));
  std::string_view rest = text;
  std::vector<ZipMember> members;
  for (uint64_t i = 0; i < directory.count; ++i) {
    auto record = take_record(rest);
    if (!record) {
      record.error().where = file.path();
      return tl::make_unexpected(std::move(record.error()));
    }
    SINTER_LET(member, locate(file, std::move(*record), directory.begin));
    members.push_back(std::move(member));
  }
  if (!rest.empty())
    return fail(fmt::format("{} bytes of the zip directory stand after its {} members", rest.size(),
                            directory.count),
                file.path(), rewrite_archive);
  SINTER_TRY(check_apart(members, file.path()));
  return members;
}

std::string zip_local_header(const std::string& name, uint32_t crc, uint64_t size) {
  std::string bytes(local_magic);
  append_numbers(bytes, zip_version, zip_flags(name), uint16_t{0}, no_zip_time, crc, in_extra,
                 in_extra, static_cast<uint16_t>(name.size()), uint16_t{20});
  bytes += name;
  append_numbers(bytes, wide_number, uint16_t{16}, size, size);
  return bytes;
}

std::string zip_directory(const std::vector<ZipMember>& members, uint64_t begin) {
  std::string bytes;
  for (const ZipMember& member : members) {
    const uint64_t size = member.end - member.begin;
    const uint64_t header = member.begin - zip_local_header(member.name, 0, 0).size();
    bytes += central_magic;
    append_numbers(bytes, static_cast<uint16_t>(made_on_unix | zip_version), zip_version,
                   zip_flags(member.name), uint16_t{0}, no_zip_time, member.crc, in_extra, in_extra,
                   static_cast<uint16_t>(member.name.size()), uint16_t{28}, uint16_t{0},
                   uint16_t{0}, uint16_t{0}, uint32_t{0600u << 16}, in_extra);
    bytes += member.name;
    append_numbers(bytes, wide_number, uint16_t{24}, size, size, header);
  }
  const uint64_t size = bytes.size(), count = members.size();
  bytes += end64_magic;
  append_numbers(bytes, uint64_t{end64_bytes - 12}, zip_version, zip_version, uint32_t{0},
                 uint32_t{0}, count, count, size, begin);
  bytes += locator_magic;
  append_numbers(bytes, uint32_t{0}, begin + size, uint32_t{1});
  bytes += end_magic;
  const auto few = static_cast<uint16_t>(std::min<uint64_t>(count, 0xFFFF));
  append_numbers(bytes, uint16_t{0}, uint16_t{0}, few, few, in_extra, in_extra, uint16_t{0});
  return bytes;
}

}  // namespace sinter
