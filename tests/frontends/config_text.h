// Config texts of tests, as plain strings that a test alters.
#pragma once

#include <doctest/doctest.h>

#include <string>

#include "frontends/huggingface/config.h"

namespace sinter::testing {

/// The config without the member that starts with `"key":`, or with another value for it; a key
/// that is not there is added.
std::string without(std::string config, const std::string& key);
std::string with(std::string config, const std::string& key, const std::string& value);

/// One-layer models with few, distinct sizes. One member a line.
std::string gpt2_config();
std::string gpt_neox_config();
std::string llama_config();
/// The config of llama_config() for a family with 4 experts, 2 of a token; no keys of one family.
std::string experts_config(const std::string& model_type);

Result<HfModel> read_config(const std::string& config, const std::string& generation = "");

/// The error's one line; "no error" if there is none.
template <typename T>
std::string message_of(const tl::expected<T, Error>& result) {
  return result ? "no error" : result.error().message();
}

}  // namespace sinter::testing
