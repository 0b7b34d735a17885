// Aligned columns for people, and how numbers are spelled in them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sinter {

class TextTable {
 public:
  /// One letter per column: 'l' or 'r'. Columns stand two spaces apart.
  explicit TextTable(std::string alignment) : alignment_(std::move(alignment)) {}

  /// A cell per column; missing ones at the end are empty.
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  /// All rows, every line after `indent` spaces, without blanks at line ends.
  std::string str(size_t indent = 0) const;

 private:
  std::string alignment_;
  std::vector<std::vector<std::string>> rows_;
};

/// Three digits and a decimal unit: "13.5 GB", "820 B". `unit` names the thing counted.
std::string with_unit(double amount, std::string_view unit);

/// Three digits and a unit: "4.12 ms", "19.5 µs".
std::string duration(double seconds);

/// "1 kernel", "15 kernels"; `plural` where an s is not enough.
std::string counted(uint64_t count, std::string_view noun, std::string_view plural = {});

}  // namespace sinter
