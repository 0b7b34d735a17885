// Attributes of ops: a small, closed set of names, each with one type.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "ir/number.h"
#include "ir/order.h"
#include "ir/types.h"

namespace sinter {

/// name, C++ type. The order is the order of printing.
#define SINTER_ATTRIBUTES(X)                                                                     \
  X(order, Order)                /* the algorithm that computes the op (orders.def) */           \
  X(axis, int64_t)               /* one axis, 0 <= axis < rank */                                \
  X(axes, std::vector<int64_t>)  /* ascending, distinct */                                       \
  X(dims, Dims)                  /* a shape */                                                   \
  X(begin, int64_t)              /* first element of a slice */                                  \
  X(size, Dim)                   /* extent of a slice */                                         \
  X(rows, Dim)                   /* rows of a result */                                          \
  X(dtype, DType)                /* a result's element type */                                   \
  X(value, Number)               /* a constant; rounded to the result's element type */          \
  X(values, std::vector<Number>) /* a literal's elements, row-major */                           \
  X(eps, double)                 /* of a norm */                                                 \
  X(heads, int64_t)              /* query heads */                                               \
  X(kv_heads, int64_t)           /* key/value heads; divides heads */                            \
  X(scale, double)               /* of attention scores */                                       \
  X(softcap, double)             /* scores = softcap * tanh(scores / softcap); absent: none */   \
  X(dropout, double)             /* probability that a weight is left out; absent: 0 */          \
  X(window, int64_t)             /* keys a query sees, itself included; absent: all before it */ \
  X(sink, int64_t)               /* leading keys a query sees beside its range; absent: 0 */     \
  X(tile_tokens, int64_t)        /* tokens of a tile of a mask */                                \
  X(tile_keys, int64_t)          /* keys of a tile of a mask */                                  \
  X(splits, int64_t)      /* parts of the keys, or of a matrix row, that are summed apart */     \
  X(streams, int64_t)     /* parts of a split of the keys, by blocks of keys in turn */          \
  X(segment, int64_t)     /* keys that are summed apart, before they are joined in order */      \
  X(rotary, int64_t)      /* leading elements of a head that rotate; even */                     \
  X(pairing, std::string) /* "half" (i, i + rotary/2) or "interleaved" (2i, 2i+1) */             \
  X(spec, std::string)    /* einsum, "nkgd,tkd->kgnt" */                                         \
  X(codes, std::string)   /* format of a quantized matrix, "int4 g128 f16" (code_format.h) */    \
  X(tensor, std::string)  /* name of a tensor in the model's files */                            \
  X(runs, int64_t)        /* runs of virtual lanes that are summed apart (run_sums) */           \
  X(count, int64_t)       /* elements that are chosen of each row (top_k) */                     \
  X(reverse, int64_t)     /* 1: a cumulative sum runs from the end; absent: 0 */                 \
  X(exclusive, int64_t)   /* 1: a cumulative sum leaves its own element out; absent: 0 */        \
  X(any_range, int64_t)   /* 1: first and last row need not be there (ops.def); absent: 0 */     \
  X(empty_zero, int64_t)  /* 1: a token that sees no key gets zeros; absent: NaN */              \
  X(checked, int64_t)     /* 1: row numbers that name no row are allowed (ops.def); absent: 0 */ \
  X(group, std::string)   /* ranks that compute one value together (all_reduce) */               \
  X(op, std::string)      /* the name under which a caller's op is registered (custom_op.h) */   \
  X(numbers, std::vector<double>) /* finite numbers for a caller's op; absent: none */

enum class AttrName : uint8_t {
#define X(name, type) name,
  SINTER_ATTRIBUTES(X)
#undef X
};

using AttrValue =
    std::variant<int64_t, double, DType, Dim, Dims, std::vector<int64_t>, std::vector<double>,
                 std::string, Number, std::vector<Number>, Order>;

std::string_view to_string(AttrName name);
std::optional<AttrName> parse_attr_name(std::string_view text);
/// Index of the attribute's type among the alternatives of AttrValue.
size_t attr_type_index(AttrName name);

/// Attributes of one op, sorted by name.
class Attributes {
 public:
  /// Converts a double, or a list of them, where the attribute has the type Number.
  Attributes& set(AttrName name, AttrValue value);
  const AttrValue* find(AttrName name) const;
  bool has(AttrName name) const { return find(name) != nullptr; }
  /// An attribute that is 1 or absent: 1.
  bool is_set(AttrName name) const { return has(name) && get<int64_t>(name) != 0; }

  /// The attribute, which the op is known to have.
  template <typename T>
  const T& get(AttrName name) const {
    const AttrValue* value = find(name);
    SINTER_CHECK(value && std::holds_alternative<T>(*value), "attribute {}", to_string(name));
    return std::get<T>(*value);
  }

  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  bool empty() const { return entries_.empty(); }
  friend bool operator==(const Attributes&, const Attributes&) = default;

 private:
  llvm::SmallVector<std::pair<AttrName, AttrValue>, 2> entries_;
};

}  // namespace sinter
