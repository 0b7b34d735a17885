// Products that `--products own` gives to Sinter's own kernels, with what joins them.
#include <array>

#include "differential/generate.h"
#include "differential/random.h"
#include "ir/text.h"

namespace sinter {
namespace {

/// A module's text that grows product by product. Values are %v1, %v2, ...
class ProductsText {
 public:
  /// tokens: their number, or "N" for a symbol.
  ProductsText(Random& random, std::string tokens) : random_(random), tokens_(std::move(tokens)) {
    type_ = random_.chance(50) ? "f16" : "bf16";
    width_ = multiple(1, 24);
    last_ = input(rows(width_));
  }

  std::string text(int64_t most) {
    for (int64_t count = random_.between(1, 3); count > 0; --count) (this->*any_part())();
    return fmt::format("module @products {{\n{}{}{}  entry @main({}) -> ({}) {{\n{}  }}\n}}\n",
                       has_symbol() ? fmt::format("  symbol N in [1, {}]\n", most) : "", weights_,
                       states_, inputs_, outputs_ + last_, body_);
  }

 private:
  using Part = void (ProductsText::*)();
  Part any_part() {
    constexpr std::array kParts{&ProductsText::chain, &ProductsText::gated, &ProductsText::rotated};
    // Caches have 300 rows.
    const Part part = random_.pick(kParts);
    return has_symbol() || part != &ProductsText::rotated ? part : &ProductsText::chain;
  }
  bool has_symbol() const { return tokens_ == "N"; }
  /// Elements of a row: 8 times a number.
  int64_t multiple(int64_t low, int64_t high) { return 8 * random_.between(low, high); }

  std::string input(std::string_view dims, std::string_view type = {}) {
    const std::string name = fmt::format("%x{}", ++names_);
    inputs_ += fmt::format("{}{}: {}[{}]", inputs_.empty() ? "" : ", ", name,
                           type.empty() ? type_ : type, dims);
    return name;
  }
  std::string weight(std::string_view dims) {
    const std::string name = fmt::format("w{}", ++names_);
    weights_ +=
        fmt::format("  weight %{0} : {1}[{2}] = file {{tensor = \"{0}\"}}\n", name, type_, dims);
    return "%" + name;
  }
  std::string line(std::string_view op, std::string_view dims, std::string_view type = {}) {
    const std::string name = fmt::format("%v{}", ++names_);
    body_ += fmt::format("    {} = {} : {}[{}]\n", name, op, type.empty() ? type_ : type, dims);
    return name;
  }
  std::string rows(int64_t width) const { return fmt::format("{}, {}", tokens_, width); }

  /// A product of the last value, by a matrix or by its transpose, or of runs of its rows by a
  /// matrix each.
  std::string product(int64_t width) {
    if (random_.chance(15)) {
      const int64_t runs = random_.between(1, 6);
      const std::string dims = fmt::format("{}, {}, {}", runs, width, width_);
      std::string w;
      if (random_.chance(50)) {
        const std::string m = weight(fmt::format("{}, {}, {}", runs, width_, width));
        w = line(fmt::format("transpose {} {{axes = [0, 2, 1]}}", m), dims);
      } else {
        w = weight(dims);
      }
      const std::string ends = input(fmt::format("{}", runs), "i32");
      return line(fmt::format("grouped_linear {}, {}, {}", last_, w, ends), rows(width));
    }
    if (random_.chance(30)) {
      const std::string m = weight(fmt::format("{}, {}", width_, width));
      // A result of another 16-bit type is no result of an own product.
      const std::string type = random_.chance(85) ? type_ : type_ == "f16" ? "bf16" : "f16";
      std::string result =
          line(fmt::format("einsum {}, {} {{spec = \"nk,km->nm\", dtype = {}}}", last_, m, type),
               rows(width), type);
      if (type != type_)
        result = line(fmt::format("cast {} {{dtype = {}}}", result, type_), rows(width));
      if (random_.chance(15)) outputs_ += result + ", ";
      return result;
    }
    const std::string w = weight(fmt::format("{}, {}", width, width_));
    const std::string bias = random_.chance(40) ? ", " + weight(fmt::format("{}", width)) : "";
    const std::string result = line(fmt::format("linear {}, {}{}", last_, w, bias), rows(width));
    if (random_.chance(15)) outputs_ += result + ", ";
    return result;
  }
  std::string part_of(const std::string& value, int64_t begin, int64_t size) {
    return line(fmt::format("slice {} {{axis = 1, begin = {}, size = {}}}", value, begin, size),
                rows(size));
  }
  void becomes(std::string value, int64_t width) {
    last_ = std::move(value);
    width_ = width;
  }
  /// Residuals, activations, and a way through float32.
  std::string with_neighbours(std::string value, int64_t width) {
    for (int64_t count = random_.between(0, 3); count > 0; --count) {
      constexpr std::array<std::string_view, 4> kActivations{"silu", "gelu_tanh", "relu", "tanh"};
      switch (random_.below(4)) {
        case 0:
          value = line(fmt::format("add {}, {}", value, input(rows(width))), rows(width));
          break;
        case 1:
          value =
              line(fmt::format("mul {}, {}", value, weight(fmt::format("{}", width))), rows(width));
          break;
        case 2:
          value = line(fmt::format("{} {}", random_.pick(kActivations), value), rows(width));
          break;
        default:
          value = line(fmt::format("cast {} {{dtype = f32}}", value), rows(width), "f32");
          value = line(fmt::format("{} {}", random_.pick(kActivations), value), rows(width), "f32");
          value = line(fmt::format("cast {} {{dtype = {}}}", value, type_), rows(width));
      }
    }
    return value;
  }

  void chain() {
    const int64_t width = random_.chance(70) ? multiple(1, 34) : random_.between(1, 270);
    const std::string value = with_neighbours(product(width), width);
    if (random_.chance(40))  // as the gradient of a bias
      outputs_ +=
          line(fmt::format("reduce_sum {} {{axes = [0]}}", value), fmt::format("1, {}", width)) +
          ", ";
    if (width % 8 != 0) outputs_ += value + ", ";  // rows that no product takes
    if (width % 8 == 0) becomes(value, width);
  }
  void gated() {
    constexpr std::array<int64_t, 6> kWidths{8, 16, 32, 64, 96, 160};
    const int64_t width = random_.pick(kWidths);
    const std::string both = product(2 * width);
    const std::string gate = part_of(both, 0, width), up = part_of(both, width, width);
    const std::string active = line(fmt::format("silu {}", gate), rows(width));
    becomes(with_neighbours(line(fmt::format("mul {}, {}", active, up), rows(width)), width),
            width);
  }
  /// Rotated queries, and rotated keys and values that go to caches.
  void rotated() {
    constexpr std::array<int64_t, 3> kHalves{8, 16, 32};
    const int64_t half = random_.pick(kHalves), head = 2 * half;
    const int64_t heads = random_.between(1, 3), kv_heads = random_.between(1, 2);
    const int64_t queries = heads * head, keys = kv_heads * head;
    const std::string all = product(queries + 2 * keys);
    const std::string cos = input(rows(half)), sin = input(rows(half)),
                      slot = input(tokens_, "i32");
    const auto turned = [&](const std::string& value, int64_t count) {
      const std::string dims = fmt::format("{}, {}, {}", tokens_, count, head);
      const std::string split = line(fmt::format("reshape {} {{dims = [{}]}}", value, dims), dims);
      const std::string rotated = line(
          fmt::format("rope {}, {}, {} {{rotary = {}, pairing = \"half\"}}", split, cos, sin, head),
          dims);
      return line(fmt::format("reshape {} {{dims = [{}]}}", rotated, rows(count * head)),
                  rows(count * head));
    };
    const auto append = [&](const std::string& value) {
      const std::string name = fmt::format("c{}", ++names_);
      states_ += fmt::format("  state %{} : {}[300, {}]\n", name, type_, keys);
      outputs_ += line(fmt::format("kv_append %{}, {}, {}", name, value, slot),
                       fmt::format("300, {}", keys)) +
                  ", ";
    };
    const std::string q = turned(part_of(all, 0, queries), heads);
    append(turned(part_of(all, queries, keys), kv_heads));
    append(part_of(all, queries + keys, keys));
    becomes(q, queries);
  }

  Random& random_;
  std::string tokens_, type_, last_, weights_, states_, inputs_, outputs_, body_;
  int64_t width_ = 0;  // of the last value
  int names_ = 0;
};

}  // namespace

Case generate_own_products(uint64_t seed) {
  Random random(seed);
  constexpr std::array<int64_t, 8> kMax{1, 4, 8, 16, 60, 128, 256, 290};
  const int64_t most = random.pick(kMax);
  // Blocks of 64 rows can be summed where the number of rows is a constant.
  constexpr std::array<std::string_view, 3> kTokens{"320", "384", "300"};
  const bool constant = random.chance(30);
  const std::string text =
      ProductsText(random, constant ? std::string(random.pick(kTokens)) : "N").text(most);
  auto module = parse_module(text, "products");
  SINTER_CHECK(module, "{}\n{}", module.error().message(), text);
  const Recipe own{.products = Recipe::Products::own};
  if (constant) return {std::move(*module), {}, own};
  return {std::move(*module), {random.chance(30) ? most : random.between(1, most)}, own};
}

}  // namespace sinter
