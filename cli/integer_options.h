// Options whose value is a whole number or a list of them. All are read by driver/integers.h, never
// by the command line library, which takes 010 for 8.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>

#include "driver/integers.h"

namespace sinter {

/// A list of at least one; 1,2,3 is [1, 2, 3].
template <typename T>
using IntegerList = std::vector<T>;

/// The value, or a usage error of the command line library.
template <typename T>
T option_value(Result<T> parsed) {
  if (parsed) return std::move(*parsed);
  throw CLI::ValidationError(parsed.error().message());
}

/// `names`: as of CLI::App::add_option. Value: T or std::optional<T>.
template <typename Value, typename T>
CLI::Option* add_integer_of(CLI::App& command, const std::string& names, Value& value,
                            const std::string& help, IntegerRange<T> range) {
  const std::string name = names.substr(0, names.find(','));
  CLI::Option* option = command.add_option_function<std::string>(
      names,
      [&value, name, range](const std::string& text) {
        value = option_value(parse_integer<T>(text, name, range));
      },
      help);
  option->type_name("N");
  return option;
}

/// The help shows the value that holds without the option after capture_default_str().
template <typename T>
CLI::Option* add_integer(CLI::App& command, const std::string& names, T& value,
                         const std::string& help, IntegerRange<T> range = {}) {
  CLI::Option* option = add_integer_of(command, names, value, help, range);
  option->default_function([&value] { return std::to_string(value); });
  return option;
}

template <typename T>
CLI::Option* add_integer(CLI::App& command, const std::string& names, std::optional<T>& value,
                         const std::string& help, IntegerRange<T> range = {}) {
  return add_integer_of(command, names, value, help, range);
}

/// One list; the option is given once.
template <typename Value, typename T = int32_t>
CLI::Option* add_integers(CLI::App& command, const std::string& name, Value& values,
                          const std::string& help, IntegerRange<T> range) {
  return command
      .add_option_function<std::string>(
          name,
          [&values, name, range](const std::string& text) {
            values = option_value(parse_integers<T>(text, name, range));
          },
          help)
      ->type_name("1,2,3");
}

/// A list each time that the option is given.
template <typename T>
CLI::Option* add_integer_lists(CLI::App& command, const std::string& name,
                               std::vector<IntegerList<T>>& lists, const std::string& help,
                               IntegerRange<T> range) {
  return command
      .add_option_function<std::vector<std::string>>(
          name,
          [&lists, name, range](const std::vector<std::string>& texts) {
            for (const std::string& text : texts)
              lists.push_back(option_value(parse_integers<T>(text, name, range)));
          },
          help)
      ->type_name("1,2,3")
      ->allow_extra_args(false);
}

inline constexpr IntegerRange<int32_t> kTokenIds = {.least = 0};
inline constexpr IntegerRange<int64_t> kNotNegative = {.least = 0};
inline constexpr IntegerRange<int64_t> kPositive = {.least = 1};

}  // namespace sinter
