// A static map from byte strings to ids, searched byte by byte: exact look-up, and all keys that
// start at a place of a text. No hashing, so that a file cannot choose keys that make it slow.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace sinter {

class Trie {
 public:
  struct Entry {
    std::string_view key;
    int32_t id;  // >= 0
  };
  using Node = uint32_t;
  static constexpr Node root = 0;
  static constexpr Node nowhere = std::numeric_limits<Node>::max();

  Trie() : Trie(std::span<const Entry>()) {}
  /// If keys are equal, the last entry wins. Keys are copied; their bytes total less than 2^32.
  explicit Trie(std::span<const Entry> entries);

  /// From `node` over one byte; `nowhere` if no key goes on like this.
  Node step(Node node, char byte) const {
    const uint32_t first = first_child_[node], count = first_child_[node + 1] - first;
    if (count == 1) return bytes_[first] == byte ? first : nowhere;  // most nodes
    const void* child = count ? std::memchr(bytes_.data() + first, byte, count) : nullptr;
    if (!child) return nowhere;
    return static_cast<Node>(static_cast<const char*>(child) - bytes_.data());
  }
  Node walk(Node node, std::string_view text) const {
    for (size_t i = 0; i < text.size() && node != nowhere; ++i) node = step(node, text[i]);
    return node;
  }
  /// The id of the key that ends at `node`, or -1.
  int32_t id(Node node) const { return ids_[node]; }

  std::optional<int32_t> find(std::string_view key) const { return key_at(walk(root, key)); }
  /// The id of the key that ends at `node`, which may be nowhere.
  std::optional<int32_t> key_at(Node node) const {
    if (node == nowhere || ids_[node] < 0) return std::nullopt;
    return ids_[node];
  }

  struct Match {
    size_t bytes;
    int32_t id;
  };
  /// The longest key, continued from `node`, that `text` starts with; keys that end at `node`
  /// itself do not count.
  std::optional<Match> longest_prefix(std::string_view text, Node node = root) const;

 private:
  // Breadth first: a node's children are contiguous, and the children of node n + 1 follow the
  // children of n.
  std::vector<uint32_t> first_child_;  // one more than nodes
  std::vector<char> bytes_;            // that lead to a node
  std::vector<int32_t> ids_;
};

}  // namespace sinter
