// Bytes of .npy and .npz files as NumPy writes them, made without NumPy.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sinter {

/// A .npy of version 1 with this dictionary as it is.
std::string npy_with(std::string_view dictionary, std::string_view data, char version = 1);
/// The dictionary that numpy.save writes.
std::string npy_dictionary(std::string_view descr, std::string_view shape,
                           std::string_view fortran = "False");
inline std::string npy_bytes(std::string_view descr, std::string_view shape,
                             std::string_view data) {
  return npy_with(npy_dictionary(descr, shape), data);
}

/// A member of an archive; what a test makes wrong is set here.
struct ZipPart {
  std::string name, bytes;
  uint16_t method = 0, flags = 0;
  std::string local_name = name;
};
/// An archive with plain records, as zip programs write small ones; `count`: the members that its
/// end record says, -1: the right number.
std::string zip_bytes(const std::vector<ZipPart>& parts, int count = -1);

}  // namespace sinter
