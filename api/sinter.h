// Sinter for C++20 programs: describe or open a model, compile it, ask why values share a kernel,
// run the plan with one's own memory, context and stream, generate text, verify, and bring kernels
// along. Header only, over the C interface (sinter_c.h), which libsinter.so exports: a program
// keeps working with a newer library of the same major version.
//
// Errors are values: a function that can fail returns a Result, and no function throws, but for
// std::bad_alloc of the standard library's own strings and vectors. A callback that throws ends
// what called it with an error.
//
// Model, Plan, Device and Executable are immutable: copies share them, between threads too. All
// else moves and is for one thread at a time; sinter_c.h says which objects answer a second thread
// with an error. The caller destroys and moves no object while a function of it runs, and none in a
// callback of that function.
//
// One file, so that a program includes and a reader searches one; the parts have headings.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "sinter_c.h"

// catch (...), which a thread that is ended in a callback (pthread_exit) passes.
#ifdef __GLIBCXX__
#include <cxxabi.h>
#define SINTER_DETAIL_CATCH_ALL                \
  catch (const __cxxabiv1::__forced_unwind&) { \
    throw;                                     \
  }                                            \
  catch (...)
#else
#define SINTER_DETAIL_CATCH_ALL catch (...)
#endif

namespace sinter {

// ---- errors ---------------------------------------------------------------------------------

/// Kinds of errors; the numbers are the exit codes of the program `sinter`.
enum class Code : int {
  internal_error = SINTER_CODE_INTERNAL_ERROR,  ///< a bug of the compiler
  usage = SINTER_CODE_USAGE,                    ///< an argument or option that does not fit
  check_failed = SINTER_CODE_CHECK_FAILED,    ///< a required fusion stayed apart, or results differ
  bad_input = SINTER_CODE_BAD_INPUT,          ///< a file, text, shape or value that is not valid
  device = SINTER_CODE_DEVICE,                ///< no such device, or its driver failed
  out_of_memory = SINTER_CODE_OUT_OF_MEMORY,  ///< of the host or the device
  cancelled = SINTER_CODE_CANCELLED,          ///< a callback asked to stop
};

/// An error: its cause, its place and the next step.
struct Error {
  Code code = Code::usage;
  std::string what;     ///< with both values of a mismatch
  std::string where;    ///< the file, argument, entry or value; may be empty
  std::string hint;     ///< the next step; may be empty
  std::string message;  ///< one line of all: "where: what; hint"
};

/// A value, or the error that kept it from being made.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : held_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : held_(std::in_place_index<1>, std::move(error)) {}

  bool has_value() const { return held_.index() == 0; }
  explicit operator bool() const { return has_value(); }
  /// Only if there is a value.
  T& operator*() { return *std::get_if<0>(&held_); }
  const T& operator*() const { return *std::get_if<0>(&held_); }
  T* operator->() { return std::get_if<0>(&held_); }
  const T* operator->() const { return std::get_if<0>(&held_); }
  /// Only if there is no value.
  const Error& error() const { return *std::get_if<1>(&held_); }

 private:
  std::variant<T, Error> held_;
};

/// Success, or an error.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool has_value() const { return !error_.has_value(); }
  explicit operator bool() const { return has_value(); }
  const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};
using Status = Result<void>;

/// Version of the library that is loaded: "0.1.0".
inline const char* version() { return sinter_version(); }

/// Whether functions of the library call callbacks; they do at first. Forbidding them waits for
/// those in progress, at most 200 ms: see sinter_allow_callbacks.
inline void allow_callbacks(bool allow) { sinter_allow_callbacks(allow ? 1 : 0); }

namespace detail {

/// Takes over an error of the C interface; null is success.
inline Status status(sinter_error* error) {
  if (!error) return {};
  Error taken{static_cast<Code>(sinter_error_code(error)), sinter_error_what(error),
              sinter_error_where(error), sinter_error_hint(error), sinter_error_message(error)};
  sinter_error_free(error);
  return taken;
}

/// A text for the C interface, where it would end at a zero character: an error.
inline Status without_zero(const std::string& text) {
  if (text.find('\0') == std::string::npos) return {};
  return Error{Code::usage, "a zero character in the text", "", "leave it out",
               "a zero character in the text; leave it out"};
}

/// A handle that copies share.
template <typename Handle>
std::shared_ptr<Handle> share(Handle* handle, void (*release)(Handle*)) {
  return std::shared_ptr<Handle>(handle, release);
}

/// A handle with one owner.
template <typename Handle>
using Owned = std::unique_ptr<Handle, void (*)(Handle*)>;

/// A text that the C interface gave.
inline std::string take_text(char* text) {
  std::string copy = text ? text : "";
  sinter_free(text);
  return copy;
}

inline std::string text_or_empty(const char* text) { return text ? text : ""; }

/// Symbol values as the C interface takes them.
struct Sizes {
  explicit Sizes(const std::map<std::string, std::int64_t>& sizes) {
    for (const auto& [name, value] : sizes) {
      names.push_back(name.c_str());
      values.push_back(value);
    }
  }
  std::vector<const char*> names;
  std::vector<std::int64_t> values;
};

}  // namespace detail

/// Limits, ops and codes of the text form as JSON: see sinter_facts.
inline Result<std::string> facts() {
  char* json = nullptr;
  if (Status done = detail::status(sinter_facts(&json)); !done) return done.error();
  return detail::take_text(json);
}

// ---- options --------------------------------------------------------------------------------

/// Called while something takes long: `stage` says what is done, `done` of `total` are complete
/// (bytes, kernels). false cancels: the function that it was given to returns Code::cancelled. The
/// thread of that function calls it.
using Progress = std::function<bool(std::string_view stage, std::int64_t done, std::int64_t total)>;

/// How a model is opened.
struct OpenOptions {
  std::string dtype;                            ///< "f32", "f16", "bf16"; empty: the model's own
  std::optional<std::uint64_t> random_weights;  ///< a seed: stand-in weights
  std::string weights;                          ///< safetensors to read instead of the model's own
  std::int64_t context = 0;  ///< tokens of the longest text; 0: the model's positions
  std::string cache;         ///< "sink=4,window=1024": a streaming cache; empty: none
  bool recompile = false;    ///< of the folder of a plan: take the module alone
  /// The format of chats ("chatml"), for language models only; empty: as the model's files say.
  std::string chat_template;
  /// Keys of config.json that are not known and change no result.
  std::vector<std::string> ignored_keys;
  std::int64_t sequences = 0;  ///< that decode together at most, 1 to 256; 0: the usual 8
};

/// How a model is compiled.
struct CompileOptions {
  std::string target;                ///< a device, "sm_90a"; empty: that one. Device::target()
  bool fuse = true;                  ///< false: every op has a kernel of its own
  bool fast = false;                 ///< fast numerics: fewer roundings, not bit for bit
  std::vector<std::string> entries;  ///< empty: all
  /// Row numbers in inputs are checked by the kernels, so that inputs may be in device memory. Not
  /// set: true for modules, false for language models.
  std::optional<bool> device_inputs;
  std::string attention;   ///< "tiled", "composed" or "relaxed" (commands.md); empty: tiled
  std::string products;    ///< "auto", "library" or "own" (commands.md); empty: auto
  bool invariant = false;  ///< a token's bits do not depend on its neighbours (invariance.md)
  std::vector<std::pair<std::string, std::string>> required;   ///< pairs that must share a kernel
  std::vector<std::pair<std::string, std::string>> forbidden;  ///< pairs that must not
  Progress progress;
};

namespace detail {

/// A number that snprintf() wrote, with a decimal point whatever the program's locale.
inline std::string with_point(std::string_view number) {
  std::string text;
  for (const char c : number) {
    const bool is_kept = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '+' || c == '-';
    if (is_kept)
      text += c;
    else if (text.empty() || text.back() != '.')
      text += '.';
  }
  return text;
}

/// sinter_options with a progress function that may throw.
class Options {
 public:
  explicit Options(const Progress& progress = {}) : progress_(progress) {
    keep(status(sinter_options_create(&options_)));
    if (options_ && progress_)
      sinter_options_progress(
          options_,
          [](void* self, const char* stage, std::int64_t done, std::int64_t total) -> int {
            return static_cast<Options*>(self)->go_on(stage, done, total) ? 0 : 1;
          },
          this);
  }
  ~Options() { sinter_options_free(options_); }
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;

  void set(const char* name, const std::string& value) {
    if (options_) keep(status(sinter_options_set(options_, name, value.c_str())));
  }
  void set_if(const char* name, const std::string& value) {
    if (!value.empty()) set(name, value);
  }
  void pair(bool required, const std::string& a, const std::string& b) {
    if (options_)
      keep(status(sinter_options_pair(options_, required ? 1 : 0, a.c_str(), b.c_str())));
  }
  void open(const OpenOptions& open) {
    set_if("dtype", open.dtype);
    if (open.random_weights) set("random-weights", std::to_string(*open.random_weights));
    set_if("weights", open.weights);
    if (open.context > 0) set("context", std::to_string(open.context));
    set_if("kv", open.cache);
    if (open.sequences > 0) set("sequences", std::to_string(open.sequences));
    if (open.recompile) set("recompile", "true");
    set_if("chat-template", open.chat_template);
    set_if("ignore-key", joined(open.ignored_keys));
  }
  void compile(const CompileOptions& compile) {
    set_if("target", compile.target);
    if (!compile.fuse) set("fuse", "false");
    if (compile.fast) set("numerics", "fast");
    set_if("entries", joined(compile.entries));
    set_if("attention", compile.attention);
    set_if("products", compile.products);
    if (compile.invariant) set("invariant", "true");
    if (compile.device_inputs) set("device-inputs", *compile.device_inputs ? "true" : "false");
    for (const auto& [a, b] : compile.required) pair(true, a, b);
    for (const auto& [a, b] : compile.forbidden) pair(false, a, b);
  }

  static std::string joined(const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ",") + name;
    return text;
  }

  /// Only if the Status is one of success.
  const sinter_options* get() const { return options_; }
  const Status& made() const { return made_; }
  /// The outcome of the function that got the options.
  Status outcome(sinter_error* error) const {
    Status done = status(error);
    if (!threw_) return done;
    return Error{Code::cancelled, "the progress function threw", "", "",
                 "the progress function threw"};
  }

 private:
  void keep(Status done) {
    if (made_ && !done) made_ = std::move(done);
  }
  bool go_on(const char* stage, std::int64_t done, std::int64_t total) {
    try {
      return progress_(stage, done, total);
    }
    SINTER_DETAIL_CATCH_ALL {
      threw_ = true;
      return false;
    }
  }

  const Progress& progress_;
  sinter_options* options_ = nullptr;
  Status made_;
  bool threw_ = false;
};

}  // namespace detail

// ---- building a module ----------------------------------------------------------------------

/// Element types.
enum class DType { f32, f16, bf16, i32, i64, i1 };
inline const char* to_string(DType dtype) {
  constexpr const char* kNames[] = {"f32", "f16", "bf16", "i32", "i64", "i1"};
  return kNames[static_cast<int>(dtype)];
}

/// An extent that is known when an entry is called.
struct Symbol {
  std::string name;
};

/// One extent of a tensor: a number or a symbol.
class Dim {
 public:
  Dim(int extent) : text_(std::to_string(extent)) {}
  Dim(std::int64_t extent) : text_(std::to_string(extent)) {}
  Dim(const Symbol& symbol) : text_(symbol.name) {}
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};
using Dims = std::vector<Dim>;

/// "[N, 768]"
inline std::string to_string(const Dims& dims) {
  std::string text = "[";
  for (std::size_t i = 0; i < dims.size(); ++i) text += (i > 0 ? ", " : "") + dims[i].text();
  return text + "]";
}
/// "f16[N, 768]"
inline std::string to_string(DType dtype, const Dims& dims) {
  return to_string(dtype) + to_string(dims);
}

/// A value of one graph.
struct Value {
  sinter_value id = UINT32_MAX;
};

/// Which keys the tokens of an attention see, and how scores are bounded.
struct AttentionOptions {
  std::int64_t window = 0;  ///< the most keys of a token, the last of its range; 0: all
  double softcap = 0;       ///< c: scores become c * tanh(score / c); 0: they stay
  /// i1: keys that are seen; of a float type: added to the scores.
  std::optional<Value> mask;
  bool any_range = false;   ///< first and last may be any numbers; keys that are there are seen
  bool empty_zero = false;  ///< a token that sees no key gets zeros, and not NaN
  std::int64_t sink = 0;    ///< a token also sees this number of leading keys, up to its last
  /// The probability that a weight is left out, 0 .. 1, both excluded, by the number `seed` i32[];
  /// 0: none is. For `attention` alone.
  double dropout = 0;
  std::optional<Value> seed;
};

namespace detail {

/// A module under construction with the first error of it.
struct Building {
  Owned<sinter_module> module{nullptr, sinter_module_free};
  Status first;

  bool good() const { return first.has_value(); }
  void keep(sinter_error* error) {
    Status done = status(error);
    if (first && !done) first = std::move(done);
  }
};

/// Attributes of the text form.
class Attributes {
 public:
  Attributes& set(const char* name, const std::string& value) {
    text_ += std::string(text_.empty() ? "" : ", ") + name + " = " + value;
    return *this;
  }
  Attributes& set(const char* name, std::int64_t value) { return set(name, std::to_string(value)); }
  Attributes& set(const char* name, double value) { return set(name, exact(value)); }
  Attributes& set(const char* name, const std::vector<std::int64_t>& values) {
    std::string list;
    for (const std::int64_t value : values)
      list += (list.empty() ? "" : ", ") + std::to_string(value);
    return set(name, "[" + list + "]");
  }
  Attributes& set(const char* name, const std::vector<double>& values) {
    std::string list;
    for (const double value : values) list += (list.empty() ? "" : ", ") + exact(value);
    return set(name, "[" + list + "]");
  }
  Attributes& quoted(const char* name, std::string_view value) {
    std::string escaped = "\"";
    for (const char c : value) {
      if (c == '"' || c == '\\') escaped += '\\';
      escaped += c;
    }
    return set(name, escaped + "\"");
  }
  const std::string& text() const { return text_; }

 private:
  /// A hexadecimal float: no digit is lost.
  static std::string exact(double value) {
    char buffer[64];
    std::snprintf(buffer, sizeof buffer, "%a", value);
    return with_point(buffer);
  }
  std::string text_;
};

}  // namespace detail

/// The graph of an entry under construction. An op that breaks a constraint makes every later call
/// do nothing, and ModuleBuilder::build returns its error. ir/ops.def defines each op; shapes and
/// types of results are inferred. `name` is the value's name, by which the ledger speaks of it;
/// empty: a name of its own.
class Graph {
 public:
  using Name = std::string_view;

  /// A parameter of the entry.
  Value input(const std::string& name, DType dtype, const Dims& dims) {
    Value value;
    if (building_->good())
      building_->keep(
          sinter_graph_input(graph_, name.c_str(), to_string(dtype, dims).c_str(), &value.id));
    return value;
  }
  /// A weight or a state of the module.
  Value use(const std::string& name) {
    Value value;
    if (building_->good()) building_->keep(sinter_graph_use(graph_, name.c_str(), &value.id));
    return value;
  }
  /// Any op of the op table, its attributes in the text form: "eps = 1e-5, axis = 1".
  Value op(const char* kind, const std::vector<Value>& operands, const std::string& attributes = {},
           Name name = {}) {
    Value value;
    if (!building_->good()) return value;
    std::vector<sinter_value> ids;
    for (const Value operand : operands) ids.push_back(operand.id);
    const std::string called(name);
    building_->keep(sinter_graph_op(graph_, kind, ids.data(), ids.size(), attributes.c_str(),
                                    called.empty() ? nullptr : called.c_str(), &value.id));
    return value;
  }
  /// Gives an op's value another name. Inputs, weights and states keep theirs.
  void rename(Value value, Name name) {
    if (building_->good())
      building_->keep(sinter_graph_rename(graph_, value.id, std::string(name).c_str()));
  }
  /// Adds a result of the entry.
  void output(Value value) {
    if (building_->good()) building_->keep(sinter_graph_output(graph_, value.id));
  }
  /// "f16[N, 768]"; empty after an error.
  std::string type(Value value) const {
    char* text = nullptr;
    if (building_->good()) building_->keep(sinter_graph_type(graph_, value.id, &text));
    return detail::take_text(text);
  }

  // Generators.
  Value constant(double value, DType dtype, const Dims& dims = {}, Name name = {}) {
    return op("constant", {}, typed(dtype, dims).set("value", value).text(), name);
  }
  /// An integer is exact.
  template <std::integral Integer>
  Value constant(Integer value, DType dtype, const Dims& dims = {}, Name name = {}) {
    return op("constant", {}, typed(dtype, dims).set("value", std::to_string(value)).text(), name);
  }
  /// i32, counts along `axis`.
  Value iota(std::int64_t axis, const Dims& dims, Name name = {}) {
    return op("iota", {}, Attributes().set("axis", axis).set("dims", to_string(dims)).text(), name);
  }
  Value literal(const std::vector<double>& values, DType dtype, const Dims& dims, Name name = {}) {
    return op("literal", {}, typed(dtype, dims).set("values", values).text(), name);
  }
  /// Integers are exact.
  template <std::integral Integer>
  Value literal(const std::vector<Integer>& values, DType dtype, const Dims& dims, Name name = {}) {
    std::string list;
    for (const Integer value : values) list += (list.empty() ? "" : ", ") + std::to_string(value);
    return op("literal", {}, typed(dtype, dims).set("values", "[" + list + "]").text(), name);
  }

  // Views.
  Value reshape(Value x, const Dims& dims, Name name = {}) {
    return op("reshape", {x}, Attributes().set("dims", to_string(dims)).text(), name);
  }
  /// Axis i of the result is axis axes[i] of x.
  Value transpose(Value x, const std::vector<std::int64_t>& axes, Name name = {}) {
    return op("transpose", {x}, Attributes().set("axes", axes).text(), name);
  }
  Value slice(Value x, std::int64_t axis, std::int64_t begin, const Dim& size, Name name = {}) {
    return op("slice", {x},
              Attributes().set("axis", axis).set("begin", begin).set("size", size.text()).text(),
              name);
  }
  Value broadcast(Value x, const Dims& dims, Name name = {}) {
    return op("broadcast", {x}, Attributes().set("dims", to_string(dims)).text(), name);
  }

  // Moving data.
  Value copy(Value x, Name name = {}) { return op("copy", {x}, {}, name); }
  Value concat(const std::vector<Value>& values, std::int64_t axis, Name name = {}) {
    return op("concat", values, Attributes().set("axis", axis).text(), name);
  }
  /// Rows of table [V ..., D], counted over all axes but the last, by ids i32 [N].
  Value embedding(Value table, Value ids, Name name = {}) {
    return op("embedding", {table, ids}, {}, name);
  }
  /// x[i, index[i, j, k], k] for axis 1: index i32 with the extents of x but along `axis`.
  Value gather(Value x, Value index, std::int64_t axis, Name name = {}) {
    return op("gather", {x, index}, Attributes().set("axis", axis).text(), name);
  }
  Value cast(Value x, DType dtype, Name name = {}) {
    return op("cast", {x}, Attributes().set("dtype", to_string(dtype)).text(), name);
  }
  /// The next version of a state: value, all of it.
  Value store(Value state, Value value, Name name = {}) {
    return op("store", {state, value}, {}, name);
  }
  /// The next version of a state: row slot[n] is update[n].
  Value kv_append(Value state, Value update, Value slot, Name name = {}) {
    return op("kv_append", {state, update, slot}, {}, name);
  }

  // Elementwise; operands broadcast as in NumPy.
  Value neg(Value a, Name name = {}) { return op("neg", {a}, {}, name); }
  Value abs(Value a, Name name = {}) { return op("abs", {a}, {}, name); }
  Value floor(Value a, Name name = {}) { return op("floor", {a}, {}, name); }
  /// To the nearest integer, ties to even.
  Value round(Value a, Name name = {}) { return op("round", {a}, {}, name); }
  Value exp(Value a, Name name = {}) { return op("exp", {a}, {}, name); }
  /// e^-|a|
  Value exp_neg_abs(Value a, Name name = {}) { return op("exp_neg_abs", {a}, {}, name); }
  /// e^a - 1
  Value expm1(Value a, Name name = {}) { return op("expm1", {a}, {}, name); }
  Value log(Value a, Name name = {}) { return op("log", {a}, {}, name); }
  /// log(1 + a)
  Value log1p(Value a, Name name = {}) { return op("log1p", {a}, {}, name); }
  Value sqrt(Value a, Name name = {}) { return op("sqrt", {a}, {}, name); }
  Value rsqrt(Value a, Name name = {}) { return op("rsqrt", {a}, {}, name); }
  Value sigmoid(Value a, Name name = {}) { return op("sigmoid", {a}, {}, name); }
  Value tanh(Value a, Name name = {}) { return op("tanh", {a}, {}, name); }
  Value erf(Value a, Name name = {}) { return op("erf", {a}, {}, name); }
  Value sin(Value a, Name name = {}) { return op("sin", {a}, {}, name); }
  Value cos(Value a, Name name = {}) { return op("cos", {a}, {}, name); }
  Value add(Value a, Value b, Name name = {}) { return op("add", {a, b}, {}, name); }
  Value sub(Value a, Value b, Name name = {}) { return op("sub", {a, b}, {}, name); }
  Value mul(Value a, Value b, Name name = {}) { return op("mul", {a, b}, {}, name); }
  Value div(Value a, Value b, Name name = {}) { return op("div", {a, b}, {}, name); }
  Value pow(Value a, Value b, Name name = {}) { return op("pow", {a, b}, {}, name); }
  /// Integers only: the quotient rounded down, and the remainder.
  Value div_floor(Value a, Value b, Name name = {}) { return op("div_floor", {a, b}, {}, name); }
  Value mod_floor(Value a, Value b, Name name = {}) { return op("mod_floor", {a, b}, {}, name); }
  Value bit_and(Value a, Value b, Name name = {}) { return op("bit_and", {a, b}, {}, name); }
  Value bit_or(Value a, Value b, Name name = {}) { return op("bit_or", {a, b}, {}, name); }
  Value bit_xor(Value a, Value b, Name name = {}) { return op("bit_xor", {a, b}, {}, name); }
  /// By b places; to the right the sign repeats. b below 0 or beyond the bits moves all out.
  Value shift_left(Value a, Value b, Name name = {}) { return op("shift_left", {a, b}, {}, name); }
  Value shift_right(Value a, Value b, Name name = {}) {
    return op("shift_right", {a, b}, {}, name);
  }
  Value maximum(Value a, Value b, Name name = {}) { return op("maximum", {a, b}, {}, name); }
  Value minimum(Value a, Value b, Name name = {}) { return op("minimum", {a, b}, {}, name); }
  Value less(Value a, Value b, Name name = {}) { return op("less", {a, b}, {}, name); }
  Value less_equal(Value a, Value b, Name name = {}) { return op("less_equal", {a, b}, {}, name); }
  Value equal(Value a, Value b, Name name = {}) { return op("equal", {a, b}, {}, name); }
  Value logical_and(Value a, Value b, Name name = {}) {
    return op("logical_and", {a, b}, {}, name);
  }
  Value logical_or(Value a, Value b, Name name = {}) { return op("logical_or", {a, b}, {}, name); }
  Value logical_not(Value a, Name name = {}) { return op("logical_not", {a}, {}, name); }
  Value atan(Value a, Name name = {}) { return op("atan", {a}, {}, name); }
  /// condition ? a : b
  Value where(Value condition, Value a, Value b, Name name = {}) {
    return op("where", {condition, a, b}, {}, name);
  }

  // Reductions; the axes stay as extents of 1.
  Value reduce_sum(Value x, const std::vector<std::int64_t>& axes, Name name = {}) {
    return op("reduce_sum", {x}, Attributes().set("axes", axes).text(), name);
  }
  Value reduce_max(Value x, const std::vector<std::int64_t>& axes, Name name = {}) {
    return op("reduce_max", {x}, Attributes().set("axes", axes).text(), name);
  }
  /// Running sums along an axis.
  Value cumulative_sum(Value x, std::int64_t axis, bool reverse = false, bool exclusive = false,
                       Name name = {}) {
    Attributes attributes;
    attributes.set("axis", axis);
    if (reverse) attributes.set("reverse", std::int64_t{1});
    if (exclusive) attributes.set("exclusive", std::int64_t{1});
    return op("cumulative_sum", {x}, attributes.text(), name);
  }

  /// [rows, D]: row v is the sum of the updates [N, D] with index[n] = v, in ascending order.
  Value scatter_add(Value index, Value updates, const Dim& rows, Name name = {}) {
    return op("scatter_add", {index, updates}, Attributes().set("rows", rows.text()).text(), name);
  }

  // Mixtures of experts.
  /// i32 [N, count]: the positions of the largest elements of each row of x [N, E], the largest
  /// first, equal ones by ascending position.
  Value top_k(Value x, std::int64_t count, Name name = {}) {
    return op("top_k", {x}, Attributes().set("count", count).text(), name);
  }
  /// [N, k, M]: x [N, K] or [N, k, K] times the matrices of w [E, M, K] that `experts` i32 [N, k]
  /// names.
  Value expert_linear(Value x, Value w, Value experts, Name name = {}) {
    return op("expert_linear", {x, w, experts}, {}, name);
  }
  /// [N, D]: the sum of the rows of x [N, k, D], weighted by `weights` [N, k], by ascending row.
  Value expert_sum(Value x, Value weights, Name name = {}) {
    return op("expert_sum", {x, weights}, {}, name);
  }

  // Activations and norms, over the last axis.
  Value silu(Value x, Name name = {}) { return op("silu", {x}, {}, name); }
  /// By erf.
  Value gelu(Value x, Name name = {}) { return op("gelu", {x}, {}, name); }
  Value gelu_tanh(Value x, Name name = {}) { return op("gelu_tanh", {x}, {}, name); }
  Value quick_gelu(Value x, Name name = {}) { return op("quick_gelu", {x}, {}, name); }
  Value relu(Value x, Name name = {}) { return op("relu", {x}, {}, name); }
  Value layer_norm(Value x, Value weight, std::optional<Value> bias, double eps, Name name = {}) {
    std::vector<Value> operands{x, weight};
    if (bias) operands.push_back(*bias);
    return op("layer_norm", operands, Attributes().set("eps", eps).text(), name);
  }
  Value rms_norm(Value x, Value weight, double eps, Name name = {}) {
    return op("rms_norm", {x, weight}, Attributes().set("eps", eps).text(), name);
  }
  Value softmax(Value x, Name name = {}) { return op("softmax", {x}, {}, name); }
  /// softmax of scale * scores f32 [..., N, K]; token n sees the keys first[n] .. last[n].
  Value attention_softmax(Value scores, Value first, Value last, double scale, DType dtype,
                          Name name = {}) {
    return attention_softmax(scores, first, last, scale, dtype, AttentionOptions(), name);
  }
  /// first and last broadcast to [..., N], the mask to [..., N, K].
  Value attention_softmax(Value scores, Value first, Value last, double scale, DType dtype,
                          const AttentionOptions& options, Name name = {}) {
    Attributes attributes;
    attributes.set("dtype", to_string(dtype)).set("scale", scale);
    return attention_op("attention_softmax", {scores, first, last}, attributes, options, name);
  }
  /// x [N, heads, head_dim], cos and sin [N, rotary/2]; pairing "half" or "interleaved".
  Value rope(Value x, Value cos, Value sin, std::int64_t rotary, std::string_view pairing = "half",
             Name name = {}) {
    return op("rope", {x, cos, sin},
              Attributes().set("rotary", rotary).quoted("pairing", pairing).text(), name);
  }

  // Products, summed in float32.
  /// x [..., K], weight [M, K], bias [M] -> [..., M]
  Value linear(Value x, Value weight, std::optional<Value> bias = {}, Name name = {}) {
    std::vector<Value> operands{x, weight};
    if (bias) operands.push_back(*bias);
    return op("linear", operands, {}, name);
  }
  /// "nkgd,tkd->kgnt"; `dtype`: of the result, if it is not the operands'.
  Value einsum(std::string_view spec, Value a, Value b, std::optional<DType> dtype = {},
               Name name = {}) {
    Attributes attributes;
    attributes.quoted("spec", spec);
    if (dtype) attributes.set("dtype", to_string(*dtype));
    return op("einsum", {a, b}, attributes.text(), name);
  }
  /// q [N, heads * d], caches [R, kv_heads * d]; token n sees the rows first[n] .. slot[n].
  /// `window`: how many of them at most, the last ones; 0: all.
  Value attention(Value q, Value keys, Value values, Value first, Value slot, std::int64_t heads,
                  std::int64_t kv_heads, double scale, std::int64_t window = 0, Name name = {}) {
    AttentionOptions options;
    options.window = window;
    return attention(q, keys, values, first, slot, heads, kv_heads, scale, options, name);
  }
  /// With leading axes [..., N, heads * d], [..., R, kv_heads * d] and [..., N]: attention of
  /// several sequences. The mask is [..., heads, N, R], each extent as it is or 1.
  Value attention(Value q, Value keys, Value values, Value first, Value slot, std::int64_t heads,
                  std::int64_t kv_heads, double scale, const AttentionOptions& options,
                  Name name = {}) {
    Attributes attributes;
    attributes.set("heads", heads).set("kv_heads", kv_heads).set("scale", scale);
    return attention_op("attention", {q, keys, values, first, slot}, attributes, options, name);
  }
  /// The choice of a token for each row of logits [N, V].
  Value sample(Value logits, Value temperature, Value top_k, Value top_p, Value seed, Value step,
               Name name = {}) {
    return op("sample", {logits, temperature, top_k, top_p, seed, step}, {}, name);
  }
  /// The sum of x over the ranks of a group, rank 0 first; of one rank x.
  Value all_reduce(Value x, std::string_view group, Name name = {}) {
    return op("all_reduce", {x}, Attributes().quoted("group", group).text(), name);
  }
  /// A kernel of one's own (register_kernel).
  Value custom(std::string_view kernel, const std::vector<Value>& operands,
               const std::vector<double>& numbers = {}, Name name = {}) {
    Attributes attributes;
    attributes.quoted("op", kernel);
    if (!numbers.empty()) attributes.set("numbers", numbers);
    return op("custom", operands, attributes.text(), name);
  }

 private:
  friend class ModuleBuilder;
  using Attributes = detail::Attributes;
  Graph(sinter_graph* graph, std::shared_ptr<detail::Building> building)
      : graph_(graph), building_(std::move(building)) {}
  static Attributes typed(DType dtype, const Dims& dims) {
    return Attributes().set("dims", to_string(dims)).set("dtype", to_string(dtype));
  }
  Value attention_op(const char* kind, std::vector<Value> operands, Attributes attributes,
                     const AttentionOptions& options, Name name) {
    if (options.softcap > 0) attributes.set("softcap", options.softcap);
    if (options.window > 0) attributes.set("window", options.window);
    if (options.sink > 0) attributes.set("sink", options.sink);
    if (options.any_range) attributes.set("any_range", std::int64_t{1});
    if (options.empty_zero) attributes.set("empty_zero", std::int64_t{1});
    if (options.mask) operands.push_back(*options.mask);
    if (options.dropout != 0) {
      attributes.set("dropout", options.dropout);
      if (options.seed) operands.push_back(*options.seed);
    }
    return op(kind, operands, attributes.text(), name);
  }

  sinter_graph* graph_;
  std::shared_ptr<detail::Building> building_;
};

/// A tensor that the weights of a model are made of.
struct TensorInfo {
  std::string name;
  std::string type;  ///< "f16[4096, 4096]"
};

/// A module and where its weights are.
class Model {
 public:
  /// A Hugging Face folder, a llama2.c file (.bin), a spec (.json), a module (.sir), or the folder
  /// of a plan. Reads no weights.
  static Result<Model> open(const std::string& path, const OpenOptions& options = {}) {
    detail::Options all;
    all.open(options);
    if (!all.made()) return all.made().error();
    sinter_model* model = nullptr;
    if (Status done = all.outcome(sinter_model_open(path.c_str(), all.get(), &model)); !done)
      return done.error();
    return Model(model);
  }
  /// Reads a module from its text form. `file` is the name in errors.
  static Result<Model> parse(std::string_view text, const std::string& file = "module") {
    sinter_model* model = nullptr;
    if (Status done =
            detail::status(sinter_model_parse(text.data(), text.size(), file.c_str(), &model));
        !done)
      return done.error();
    return Model(model);
  }

  std::string name() const { return sinter_model_name(get()); }
  /// The module before the passes, in the text form.
  Result<std::string> text() const {
    char* text = nullptr;
    if (Status done = detail::status(sinter_model_text(get(), &text)); !done) return done.error();
    return detail::take_text(text);
  }
  /// The tensors that Weights must have if the model has no files.
  std::vector<TensorInfo> tensors() const {
    std::vector<TensorInfo> tensors;
    for (std::size_t i = 0; i < sinter_model_tensor_count(get()); ++i)
      tensors.push_back({sinter_model_tensor_name(get(), i), sinter_model_tensor_type(get(), i)});
    return tensors;
  }
  const sinter_model* get() const { return model_.get(); }

 private:
  friend class ModuleBuilder;
  explicit Model(sinter_model* model) : model_(detail::share(model, sinter_model_free)) {}
  std::shared_ptr<sinter_model> model_;
};

/// Builds a module: symbols, weights, states, and entries with their graphs. The first error makes
/// every later call do nothing, and build() returns it.
class ModuleBuilder {
 public:
  explicit ModuleBuilder(const std::string& name)
      : building_(std::make_shared<detail::Building>()) {
    sinter_module* module = nullptr;
    building_->keep(sinter_module_create(name.c_str(), &module));
    building_->module.reset(module);
  }

  /// An extent of low .. high, divisible by `multiple`.
  Symbol symbol(const std::string& name, std::int64_t low, std::int64_t high,
                std::int64_t multiple = 1, const std::optional<Symbol>& at_most = {}) {
    if (building_->good())
      building_->keep(sinter_module_symbol(module(), name.c_str(), low, high, multiple,
                                           at_most ? at_most->name.c_str() : nullptr));
    return {name};
  }
  /// A weight of constant extents: the tensor of that name.
  void weight(const std::string& name, DType dtype, const Dims& dims) {
    if (building_->good())
      building_->keep(sinter_module_weight(module(), name.c_str(), to_string(dtype, dims).c_str()));
  }
  /// Memory that a session keeps between calls, zeros at first.
  void state(const std::string& name, DType dtype, const Dims& dims) {
    if (building_->good())
      building_->keep(sinter_module_state(module(), name.c_str(), to_string(dtype, dims).c_str()));
  }
  Graph entry(const std::string& name) {
    sinter_graph* graph = nullptr;
    if (building_->good()) building_->keep(sinter_module_entry(module(), name.c_str(), &graph));
    return Graph(graph, building_);
  }
  /// The module, verified.
  Result<Model> build() const {
    if (!building_->good()) return building_->first.error();
    sinter_model* model = nullptr;
    if (Status done = detail::status(sinter_model_build(module(), &model)); !done)
      return done.error();
    return Model(model);
  }

 private:
  sinter_module* module() const { return building_->module.get(); }
  std::shared_ptr<detail::Building> building_;
};

// ---- plans and the ledger -------------------------------------------------------------------

/// A verdict of fusion about two values.
struct Decision {
  std::string a, b;
  bool fused = false;
  std::string reason;             ///< an id that stays between versions: "convexity.path"
  std::string text;               ///< what the reason means
  std::string detail;             ///< the values and sizes that decided
  std::vector<std::string> path;  ///< the witness of a refusal: values from one to the other
  std::int64_t saved_bytes = 0;   ///< memory traffic saved in a call of usual sizes
  std::string savings;            ///< for people: "32.8 KB", "a launch"
  std::string change;             ///< what would have to change for the two to share a kernel
  /// The launches of the entry that compute the two values; -1: none does, as for an input.
  std::array<std::int64_t, 2> launches = {-1, -1};
  /// An answer of Plan::why, where others stand between the two, has the launches of the path's
  /// values, and why the first two neighbours on it that share no kernel do not; else empty.
  std::vector<std::int64_t> path_launches = {};
  std::shared_ptr<const Decision> first_refusal = {};
};

/// The costs of a call of an entry.
struct Costs {
  std::int64_t launches = 0;      ///< kernels, library calls and copies
  std::int64_t kernels = 0;       ///< distinct generated kernels among them
  std::int64_t products = 0;      ///< library calls among them
  std::int64_t moved_bytes = 0;   ///< read and written by all launches
  std::int64_t arena_bytes = 0;   ///< memory of intermediate values
  double predicted_seconds = -1;  ///< by the cost model; -1: the plan was opened from a folder
};

/// A parameter or a result of an entry.
struct ValueInfo {
  std::string name;
  std::string type;  ///< "f16[N, 4096]"
};

/// The values of a symbol that a variant of an entry is for: low .. high.
struct VariantRange {
  std::string symbol;
  std::int64_t low = 0, high = 0;
};

/// A launch of an entry.
struct StepInfo {
  std::string kind;          ///< "kernel", "gemm" (a call of the library) or "copy"
  std::string values;        ///< what it computes: "%norm, %sum"
  std::int64_t kernel = -1;  ///< index among Plan::kernels; -1: none
};

/// A generated kernel.
struct KernelInfo {
  std::string name;
  std::string source;  ///< CUDA C++ text; empty of a plan that was opened from a folder
};

/// Values of symbols, by name.
using SymbolValues = std::map<std::string, std::int64_t>;

/// A compiled plan of all entries of a model.
class Plan {
 public:
  /// Compiles a model. Of a model that is the folder of a plan, that plan is taken as it is.
  static Result<Plan> compile(const Model& model, const CompileOptions& options = {}) {
    detail::Options all(options.progress);
    all.compile(options);
    if (!all.made()) return all.made().error();
    sinter_plan* plan = nullptr;
    if (Status done = all.outcome(sinter_compile(model.get(), all.get(), &plan)); !done)
      return done.error();
    return Plan(plan);
  }
  /// The plan in a folder.
  static Result<Plan> open(const std::string& folder) {
    Result<Model> model = Model::open(folder);
    if (!model) return model.error();
    return compile(*model);
  }
  /// Writes a folder that must be absent, empty or hold a plan; it appears as a whole or not at
  /// all. `machine_code`: architectures to compile the kernels for, "sm_90a"; needs NVRTC.
  Status save(const std::string& folder, const std::vector<std::string>& machine_code = {},
              const Progress& progress = {}) const {
    detail::Options all(progress);
    std::string archs;
    for (const std::string& arch : machine_code) archs += (archs.empty() ? "" : ",") + arch;
    all.set_if("machine-code", archs);
    if (!all.made()) return all.made();
    return all.outcome(sinter_plan_save(get(), folder.c_str(), all.get()));
  }

  std::string target() const { return sinter_plan_target(get()); }
  std::vector<std::string> entries() const {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < sinter_plan_entry_count(get()); ++i)
      names.push_back(sinter_plan_entry_name(get(), i));
    return names;
  }
  /// States, which a session keeps between calls.
  std::vector<ValueInfo> states() const {
    std::vector<ValueInfo> values;
    for (std::size_t i = 0; i < sinter_plan_state_count(get()); ++i)
      values.push_back({sinter_plan_state_name(get(), i), sinter_plan_state_type(get(), i)});
    return values;
  }
  /// Parameters of entry `entry`, counted from 0.
  /// The values of a symbol that a variant, one of several entries of its name, is for.
  std::optional<VariantRange> range(std::size_t entry = 0) const {
    const char* symbol = nullptr;
    VariantRange range;
    if (!sinter_plan_entry_range(get(), entry, &symbol, &range.low, &range.high))
      return std::nullopt;
    range.symbol = symbol;
    return range;
  }
  std::vector<ValueInfo> inputs(std::size_t entry = 0) const {
    std::vector<ValueInfo> values;
    for (std::size_t i = 0; i < sinter_plan_input_count(get(), entry); ++i)
      values.push_back(
          {sinter_plan_input_name(get(), entry, i), sinter_plan_input_type(get(), entry, i)});
    return values;
  }
  std::vector<ValueInfo> outputs(std::size_t entry = 0) const {
    std::vector<ValueInfo> values;
    for (std::size_t i = 0; i < sinter_plan_output_count(get(), entry); ++i)
      values.push_back(
          {sinter_plan_output_name(get(), entry, i), sinter_plan_output_type(get(), entry, i)});
    return values;
  }
  std::vector<StepInfo> steps(std::size_t entry = 0) const {
    std::vector<StepInfo> steps;
    for (std::size_t i = 0; i < sinter_plan_step_count(get(), entry); ++i)
      steps.push_back({sinter_plan_step_kind(get(), entry, i),
                       sinter_plan_step_values(get(), entry, i),
                       sinter_plan_step_kernel(get(), entry, i)});
    return steps;
  }
  std::vector<KernelInfo> kernels() const {
    std::vector<KernelInfo> kernels;
    for (std::size_t i = 0; i < sinter_plan_kernel_count(get()); ++i)
      kernels.push_back({sinter_plan_kernel_name(get(), i), sinter_plan_kernel_source(get(), i)});
    return kernels;
  }
  /// Symbols that are not named have usual values.
  Result<Costs> costs(std::size_t entry = 0, const SymbolValues& symbols = {}) const {
    const detail::Sizes sizes(symbols);
    sinter_costs* costs = nullptr;
    if (Status done = detail::status(sinter_plan_costs(
            get(), entry, sizes.names.data(), sizes.values.data(), sizes.names.size(), &costs));
        !done)
      return done.error();
    const Costs all{sinter_costs_launches(costs),    sinter_costs_kernels(costs),
                    sinter_costs_products(costs),    sinter_costs_moved_bytes(costs),
                    sinter_costs_arena_bytes(costs), sinter_costs_predicted_seconds(costs)};
    sinter_costs_free(costs);
    return all;
  }

  /// The fusion decisions of an entry: acceptances in their order, then refusals.
  Result<std::vector<Decision>> decisions(std::size_t entry = 0) const {
    std::size_t count = 0;
    if (Status done = detail::status(sinter_plan_decision_count(get(), entry, &count)); !done)
      return done.error();
    std::vector<Decision> decisions;
    for (std::size_t i = 0; i < count; ++i)
      decisions.push_back(read(sinter_plan_decision(get(), entry, i)));
    return decisions;
  }
  /// Why two values of an entry share a kernel or not.
  Result<Decision> why(const std::string& entry, const std::string& a, const std::string& b) const {
    sinter_decision* decision = nullptr;
    if (Status done =
            detail::status(sinter_plan_why(get(), entry.c_str(), a.c_str(), b.c_str(), &decision));
        !done)
      return done.error();
    Decision answer = read(decision);
    sinter_decision_free(decision);
    return answer;
  }
  /// "plan.json", "module" (after all passes), "ledger.json", "ledger.txt", "ledger.html" or
  /// "ledger-with-module.html".
  Result<std::string> text(const std::string& what) const {
    char* text = nullptr;
    if (Status done = detail::status(sinter_plan_text(get(), what.c_str(), &text)); !done)
      return done.error();
    return detail::take_text(text);
  }
  const sinter_plan* get() const { return plan_.get(); }

 private:
  explicit Plan(sinter_plan* plan) : plan_(detail::share(plan, sinter_plan_free)) {}
  static Decision read(const sinter_decision* from) {
    Decision decision{sinter_decision_a(from),
                      sinter_decision_b(from),
                      sinter_decision_fused(from) != 0,
                      sinter_decision_reason(from),
                      sinter_decision_text(from),
                      sinter_decision_detail(from),
                      {},
                      sinter_decision_saved_bytes(from),
                      sinter_decision_savings(from),
                      sinter_decision_change(from),
                      {sinter_decision_launch(from, 0), sinter_decision_launch(from, 1)},
                      {},
                      {}};
    const sinter_decision* first = sinter_decision_first_refusal(from);
    for (std::size_t i = 0; i < sinter_decision_path_count(from); ++i) {
      decision.path.push_back(sinter_decision_path(from, i));
      if (first) decision.path_launches.push_back(sinter_decision_path_launch(from, i));
    }
    if (first) decision.first_refusal = std::make_shared<const Decision>(read(first));
    return decision;
  }

  std::shared_ptr<sinter_plan> plan_;
};

// ---- devices, weights, sessions -------------------------------------------------------------

/// A GPU in the caller's hands.
struct CudaOptions {
  int ordinal = 0;
  void* context = nullptr;  ///< a CUcontext; null: the device's primary context
  /// Device memory, aligned to at least 256 bytes; null where there is none left. `stream` is the
  /// CUstream of the session whose memory it is, null for what sessions share. Both or none.
  std::function<void*(std::size_t bytes, void* stream)> allocate;
  std::function<void(void* memory, std::size_t bytes, void* stream)> release;
};

/// The CPU or a GPU.
class Device {
 public:
  /// "cpu", "cuda", "cuda:N", or "auto": the first GPU, else the CPU.
  static Result<Device> open(const std::string& name) {
    sinter_device* device = nullptr;
    if (Status done = detail::status(sinter_device_open(name.c_str(), &device)); !done)
      return done.error();
    return Device(device, nullptr);
  }
  static Result<Device> cuda(CudaOptions options) {
    const bool allocates = options.allocate && options.release;
    auto kept = std::make_shared<CudaOptions>(std::move(options));
    sinter_device* device = nullptr;
    const sinter_allocate allocate = [](void* user, std::size_t bytes, void* stream) -> void* {
      try {
        return static_cast<CudaOptions*>(user)->allocate(bytes, stream);
      }
      SINTER_DETAIL_CATCH_ALL { return nullptr; }
    };
    const sinter_release release = [](void* user, void* memory, std::size_t bytes, void* stream) {
      try {
        static_cast<CudaOptions*>(user)->release(memory, bytes, stream);
      }
      SINTER_DETAIL_CATCH_ALL {  // the memory is lost
      }
    };
    if (Status done = detail::status(
            sinter_device_open_cuda(kept->ordinal, kept->context, allocates ? allocate : nullptr,
                                    allocates ? release : nullptr, kept.get(), &device));
        !done)
      return done.error();
    return Device(device, std::move(kept));
  }

  /// "cpu", "cuda:0 (NVIDIA H200)"
  std::string name() const { return sinter_device_name(get()); }
  /// The target to compile for; empty for the CPU.
  std::string target() const { return sinter_device_target(get()); }
  const sinter_device* get() const { return device_.get(); }

 private:
  friend class Executable;
  friend class Encoder;
  friend class LanguageModel;
  Device(sinter_device* device, std::shared_ptr<CudaOptions> kept)
      : kept_(std::move(kept)), device_(detail::share(device, sinter_device_free)) {}

  std::shared_ptr<CudaOptions> kept_;  // what allocates; outlives all that was allocated
  std::shared_ptr<sinter_device> device_;
};

/// A tensor in the caller's memory: of the host, or dense and of the device. Strides are in
/// elements; empty: dense, the last axis innermost.
struct TensorRef {
  DType dtype = DType::f32;
  std::vector<std::int64_t> dims;
  void* data = nullptr;
  std::vector<std::int64_t> strides = {};
};
/// The same, to be read.
struct ConstTensorRef {
  DType dtype = DType::f32;
  std::vector<std::int64_t> dims;
  const void* data = nullptr;
  std::vector<std::int64_t> strides = {};
};

/// Tensors that the weights of a model are made of, by name.
class Weights {
 public:
  /// Memory of the host must stay until Executable::load returns; memory of the device
  /// (`on_device`) as long as the executable: a weight that is such a tensor is used where it is.
  void add(const std::string& name, const ConstTensorRef& tensor, bool on_device = false) {
    tensors_.push_back({name, tensor, on_device});
  }

 private:
  friend class Executable;
  friend Result<struct Report> verify(const Model&, const Device&, const Weights&,
                                      const struct VerifyOptions&);
  struct Named {
    std::string name;
    ConstTensorRef tensor;
    bool on_device;
  };
  Result<detail::Owned<sinter_weights>> handle() const {
    sinter_weights* made = nullptr;
    if (Status done = detail::status(sinter_weights_create(&made)); !done) return done.error();
    detail::Owned<sinter_weights> weights(made, sinter_weights_free);
    for (const auto& [name, tensor, on_device] : tensors_)
      if (Status done = detail::status(sinter_weights_add(
              made, name.c_str(), to_string(tensor.dtype), tensor.dims.size(), tensor.dims.data(),
              tensor.strides.empty() ? nullptr : tensor.strides.data(), tensor.data,
              on_device ? 1 : 0));
          !done)
        return done.error();
    return weights;
  }

  std::vector<Named> tensors_;
};

/// A plan on a device, with its weights.
class Executable {
 public:
  /// Compiles what machine code is missing and computes the weights from the model's files and from
  /// `weights`, which come first. `tune`: on a GPU matrix products are chosen by timing
  /// (sinter_load).
  static Result<Executable> load(const Plan& plan, const Device& device,
                                 const Weights& weights = {}, const Progress& progress = {},
                                 bool tune = false) {
    detail::Options all(progress);
    if (tune) all.set("tune", "true");
    if (!all.made()) return all.made().error();
    auto tensors = weights.handle();
    if (!tensors) return tensors.error();
    sinter_executable* executable = nullptr;
    if (Status done = all.outcome(
            sinter_load(plan.get(), device.get(), tensors->get(), all.get(), &executable));
        !done)
      return done.error();
    return Executable(executable, device.kept_);
  }
  const sinter_executable* get() const { return executable_.get(); }

 private:
  friend class Session;
  Executable(sinter_executable* executable, std::shared_ptr<CudaOptions> kept)
      : kept_(std::move(kept)), executable_(detail::share(executable, sinter_executable_free)) {}

  std::shared_ptr<CudaOptions> kept_;
  std::shared_ptr<sinter_executable> executable_;
};

/// States of one user, and a stream. One call at a time; different sessions may run on different
/// threads at the same time.
class Session {
 public:
  /// States are zeros. `symbols` gives values to the symbols in types of states. On a GPU the
  /// session makes a stream of its own, or uses the caller's CUstream, which must outlive it.
  static Result<Session> create(const Executable& executable, const SymbolValues& symbols = {},
                                std::optional<void*> stream = {}) {
    const detail::Sizes sizes(symbols);
    sinter_session* session = nullptr;
    sinter_error* error =
        stream ? sinter_session_create_on_stream(executable.get(), sizes.names.data(),
                                                 sizes.values.data(), sizes.names.size(), *stream,
                                                 &session)
               : sinter_session_create(executable.get(), sizes.names.data(), sizes.values.data(),
                                       sizes.names.size(), &session);
    if (Status done = detail::status(error); !done) return done.error();
    return Session(session, executable.kept_);
  }

  /// A session on the stream of `other`, whose memory of intermediate values it shares; see
  /// sinter_session_create_beside.
  static Result<Session> create_beside(const Session& other, const Executable& executable,
                                       const SymbolValues& symbols = {}) {
    const detail::Sizes sizes(symbols);
    sinter_session* session = nullptr;
    sinter_error* error =
        sinter_session_create_beside(other.get(), executable.get(), sizes.names.data(),
                                     sizes.values.data(), sizes.names.size(), &session);
    if (Status done = detail::status(error); !done) return done.error();
    return Session(session, executable.kept_);
  }

  /// The CUstream; null on the CPU.
  void* stream() const { return sinter_session_stream(session_.get()); }
  /// Waits for the calls made so far.
  Status synchronize() { return detail::status(sinter_session_synchronize(session_.get())); }
  /// Sets the states to zeros again.
  Status clear() { return detail::status(sinter_session_clear(session_.get())); }
  /// Copies a state to host memory of its type and extents. Waits.
  Status read_state(const std::string& name, const TensorRef& to) {
    return detail::status(sinter_session_read_state(
        session_.get(), name.c_str(), to_string(to.dtype), to.dims.size(), to.dims.data(),
        to.strides.empty() ? nullptr : to.strides.data(), to.data));
  }
  sinter_session* get() const { return session_.get(); }

 private:
  friend class Call;
  Session(sinter_session* session, std::shared_ptr<CudaOptions> kept)
      : kept_(std::move(kept)), session_(session, sinter_session_free) {}

  std::shared_ptr<CudaOptions> kept_;
  detail::Owned<sinter_session> session_;
};

/// An entry of a session with its tensors bound.
class Call {
 public:
  static Result<Call> create(Session& session, const std::string& entry) {
    sinter_call* call = nullptr;
    if (Status done = detail::status(sinter_call_create(session.get(), entry.c_str(), &call));
        !done)
      return done.error();
    return Call(call, session.kept_);
  }

  /// Gives a symbol its value. Other symbols take the values of the inputs' shapes.
  Status symbol(const std::string& name, std::int64_t value) {
    return detail::status(sinter_call_symbol(call_.get(), name.c_str(), value));
  }
  /// Binds memory to an input: host memory on the CPU, dense device memory on a GPU. It must hold
  /// the value while the call runs, and may be bound anew between runs.
  Status input(const std::string& name, const ConstTensorRef& tensor) {
    return detail::status(sinter_call_input(
        call_.get(), name.c_str(), to_string(tensor.dtype), tensor.dims.size(), tensor.dims.data(),
        tensor.strides.empty() ? nullptr : tensor.strides.data(), tensor.data));
  }
  /// Binds memory to an output. Every output needs its own.
  Status output(const std::string& name, const TensorRef& tensor) {
    return detail::status(sinter_call_output(
        call_.get(), name.c_str(), to_string(tensor.dtype), tensor.dims.size(), tensor.dims.data(),
        tensor.strides.empty() ? nullptr : tensor.strides.data(), tensor.data));
  }
  /// Memory that the call uses for a state, in place, instead of the session's, which it leaves
  /// alone. A session whose calls have memory for all of their states allocates none.
  Status state(const std::string& name, const TensorRef& tensor) {
    return detail::status(sinter_call_state(
        call_.get(), name.c_str(), to_string(tensor.dtype), tensor.dims.size(), tensor.dims.data(),
        tensor.strides.empty() ? nullptr : tensor.strides.data(), tensor.data));
  }
  /// Moves all inputs and outputs to other memory, in the order of Plan::inputs and Plan::outputs,
  /// with the types, extents and strides that they are bound with. A prepared call stays prepared.
  Status addresses(const std::vector<const void*>& inputs, const std::vector<void*>& outputs) {
    return detail::status(sinter_call_addresses(call_.get(), inputs.data(), inputs.size(),
                                                outputs.data(), outputs.size()));
  }
  /// Extents of an output for the symbol values known so far.
  Result<std::vector<std::int64_t>> output_dims(const std::string& name) {
    std::vector<std::int64_t> dims(8);
    std::size_t rank = dims.size();
    if (Status done =
            detail::status(sinter_call_output_dims(call_.get(), name.c_str(), &rank, dims.data()));
        !done)
      return done.error();
    dims.resize(rank);
    return dims;
  }
  /// Does all that run() needs and must not do while a graph is captured. run() does it too, where
  /// it was not done.
  Status prepare() { return detail::status(sinter_call_prepare(call_.get())); }
  /// On the CPU it has ended when this returns. On a GPU its kernels are enqueued in the session's
  /// stream: a prepared call allocates nothing, waits for nothing and copies nothing (but an output
  /// that is an input, weight or state), so that it may be captured in a CUDA graph.
  Status run() { return detail::status(sinter_call_run(call_.get())); }
  /// From now on the call's steps may run in groups, and a tensor may be bound without memory
  /// (null) as long as no step that runs needs it. The arena may be larger then.
  Status allow_groups() { return detail::status(sinter_call_allow_groups(call_.get())); }
  /// The number of steps, and when they use the call's tensors, in the order of Plan::inputs and
  /// Plan::outputs: input_ends[i] steps have run when input i is not read any more, and no step
  /// before output_begins[i] writes in the memory of output i.
  struct Lifetimes {
    std::size_t steps = 0;
    std::vector<std::size_t> input_ends, output_begins;
  };
  Result<Lifetimes> lifetimes(std::size_t input_count, std::size_t output_count) {
    Lifetimes used{0, std::vector<std::size_t>(input_count),
                   std::vector<std::size_t>(output_count)};
    if (Status done = detail::status(
            sinter_call_lifetimes(call_.get(), &used.steps, used.input_ends.data(), input_count,
                                  used.output_begins.data(), output_count));
        !done)
      return done.error();
    return used;
  }
  /// run() for the steps from `first` to `last`, without the latter. The groups of a call follow
  /// one another; in between, addresses() may give memory to outputs that are not written yet, and
  /// take memory (null) from inputs that are not read any more. Every input that any step is still
  /// to read has memory, and an output stays where it is from the group that writes it first to the
  /// end.
  Status run_steps(std::size_t first, std::size_t last) {
    return detail::status(sinter_call_run_steps(call_.get(), first, last));
  }
  /// On a GPU: waits, and is an error if a row number of the last run names no row.
  Status check() { return detail::status(sinter_call_check(call_.get())); }

 private:
  Call(sinter_call* call, std::shared_ptr<CudaOptions> kept)
      : kept_(std::move(kept)), call_(call, sinter_call_free) {}

  std::shared_ptr<CudaOptions> kept_;
  detail::Owned<sinter_call> call_;
};

// ---- language models ------------------------------------------------------------------------

/// How text is generated.
struct GenerateOptions {
  std::int64_t count = 64;  ///< tokens for each prompt, at most
  /// 0: the likeliest token. Without one: 1 where top_k, top_p or seed is given, else 0.
  std::optional<double> temperature;
  std::optional<std::int32_t> top_k;  ///< 0: all
  std::optional<double> top_p;        ///< 1: all
  std::optional<std::int32_t> seed;   ///< of the draws
  bool stop_at_end = true;  ///< a sequence ends at an end token of the model, which is not given
  std::vector<std::int32_t> ends;  ///< further tokens that end one, with stop_at_end or without
  /// A token of a sequence, and the text that is certain with it ("" while a character is
  /// unfinished, or without a tokenizer). false ends the generation, without an error.
  std::function<bool(std::size_t sequence, std::int32_t token, std::string_view text)> on_token;
  /// The most memory for the intermediate values of a call: "2GB", "1500MB". Longer prompts are fed
  /// in several calls. Empty: 2GB
  std::string activation_memory;
  std::int64_t prefill_chunk = 0;  ///< tokens of prompts that a call takes at most; 0: no limit
  Progress progress;               ///< stage "prompts", tokens
};

/// A message as the tokens of a conversation's beginning.
struct ChatPrompt {
  std::vector<std::int32_t> tokens;
  std::optional<std::int32_t> end;  ///< ends the answer: for GenerateOptions::ends
};

/// A decoder-only language model on a device, compiled and loaded, with its tokenizer if it has
/// one.
class LanguageModel {
 public:
  static Result<LanguageModel> open(const std::string& path, const Device& device,
                                    const OpenOptions& open = {},
                                    const CompileOptions& compile = {}) {
    detail::Options all(compile.progress);
    all.open(open);
    all.compile(compile);
    if (!all.made()) return all.made().error();
    sinter_language_model* model = nullptr;
    if (Status done =
            all.outcome(sinter_language_model_open(path.c_str(), device.get(), all.get(), &model));
        !done)
      return done.error();
    return LanguageModel(model, device.kept_);
  }

  /// Token ids of a text, with the special tokens that begin one.
  Result<std::vector<std::int32_t>> encode(const std::string& text) const {
    if (Status whole = detail::without_zero(text); !whole) return whole.error();
    std::int32_t* tokens = nullptr;
    std::size_t count = 0;
    if (Status done = detail::status(
            sinter_language_model_encode(model_.get(), text.c_str(), &tokens, &count));
        !done)
      return done.error();
    return take(tokens, count);
  }
  /// A message in the model's chat format, after a system message if there is one.
  Result<ChatPrompt> encode_chat(const std::string& message,
                                 const std::optional<std::string>& system = {}) const {
    if (Status whole = detail::without_zero(message); !whole) return whole.error();
    if (Status whole = detail::without_zero(system.value_or("")); !whole) return whole.error();
    std::int32_t* tokens = nullptr;
    std::size_t count = 0;
    std::int32_t end = -1;
    if (Status done = detail::status(
            sinter_language_model_encode_chat(model_.get(), system ? system->c_str() : nullptr,
                                              message.c_str(), &tokens, &count, &end));
        !done)
      return done.error();
    ChatPrompt prompt{take(tokens, count), {}};
    if (end >= 0) prompt.end = end;
    return prompt;
  }
  Result<std::string> decode(const std::vector<std::int32_t>& tokens) const {
    char* text = nullptr;
    std::size_t size = 0;
    if (Status done = detail::status(sinter_language_model_decode_all(model_.get(), tokens.data(),
                                                                      tokens.size(), &text, &size));
        !done)
      return done.error();
    std::string copy(text, size);
    sinter_free(text);
    return copy;
  }
  /// Continues the prompts, none of which is empty; the new tokens of each.
  Result<std::vector<std::vector<std::int32_t>>> generate(
      const std::vector<std::vector<std::int32_t>>& prompts, const GenerateOptions& options = {}) {
    detail::Options all(options.progress);
    all.set("count", std::to_string(options.count));
    set_sampling(all, options);
    all.set("stop-at-end", options.stop_at_end ? "true" : "false");
    std::string ends;
    for (const std::int32_t end : options.ends)
      ends += (ends.empty() ? "" : ",") + std::to_string(end);
    all.set_if("end", ends);
    all.set_if("activation-memory", options.activation_memory);
    if (options.prefill_chunk > 0) all.set("prefill-chunk", std::to_string(options.prefill_chunk));
    if (!all.made()) return all.made().error();
    std::vector<const std::int32_t*> starts;
    std::vector<std::size_t> lengths;
    for (const auto& prompt : prompts) {
      starts.push_back(prompt.data());
      lengths.push_back(prompt.size());
    }
    Tokens tokens{options, {}, false};
    tokens.of_sequence.resize(prompts.size());
    const sinter_on_text on_text = [](void* user, std::size_t sequence, std::int32_t token,
                                      const char* text, std::size_t size) -> int {
      return static_cast<Tokens*>(user)->add(sequence, token, {text, size}) ? 0 : 1;
    };
    Status done = all.outcome(sinter_language_model_generate_text(
        model_.get(), starts.data(), lengths.data(), prompts.size(), all.get(), on_text, &tokens));
    if (!done) return done.error();
    if (tokens.threw)
      return Error{Code::cancelled, "the token callback threw", "", "", "the token callback threw"};
    return std::move(tokens.of_sequence);
  }

 private:
  friend class Batch;
  struct Tokens {
    const GenerateOptions& options;
    std::vector<std::vector<std::int32_t>> of_sequence;
    bool threw;
    bool add(std::size_t sequence, std::int32_t token, std::string_view text) {
      try {
        of_sequence[sequence].push_back(token);
        return !options.on_token || options.on_token(sequence, token, text);
      }
      SINTER_DETAIL_CATCH_ALL {
        threw = true;
        return false;
      }
    }
  };
  LanguageModel(sinter_language_model* model, std::shared_ptr<CudaOptions> kept)
      : kept_(std::move(kept)), model_(model, sinter_language_model_free) {}
  static std::vector<std::int32_t> take(std::int32_t* tokens, std::size_t count) {
    std::vector<std::int32_t> copy(tokens, tokens + count);
    sinter_free(tokens);
    return copy;
  }
  static std::string number(double value) {
    char buffer[64];
    std::snprintf(buffer, sizeof buffer, "%.17g", value);
    return detail::with_point(buffer);
  }
  template <typename Sampling>
  static void set_sampling(detail::Options& all, const Sampling& options) {
    if (options.temperature) all.set("temperature", number(*options.temperature));
    if (options.top_k) all.set("top-k", std::to_string(*options.top_k));
    if (options.top_p) all.set("top-p", number(*options.top_p));
    if (options.seed) all.set("seed", std::to_string(*options.seed));
  }

  std::shared_ptr<CudaOptions> kept_;
  detail::Owned<sinter_language_model> model_;
};

/// How the next token of a sequence is chosen.
struct SamplingOptions {
  /// 0: the likeliest token. Without one: 1 where top_k, top_p or seed is given, else 0.
  std::optional<double> temperature;
  std::optional<std::int32_t> top_k;  ///< 0: all
  std::optional<double> top_p;        ///< 1: all
  std::optional<std::int32_t> seed;   ///< of the draws
  Progress progress;                  ///< stage "prompts", tokens
};

/// Sequences of a language model that decode together and come and go, each in a place of the
/// caches. What a sequence is continued by does not depend on its place, unless a stored plan's
/// caches have no room for places of whole steps of 128 rows. It depends on the others only through
/// the number of sequences of a step, which decides how products round: with the usual options 1 to
/// 8 are alike on a CPU and 2 to 8 on a GPU, and so are 9 to 64 of a 16-bit model on a Hopper GPU;
/// above, a library's products may round each number and each row differently. The batches of a
/// model, and the model where it generates, serve one thread at a time.
class Batch {
 public:
  struct Token {
    std::int64_t sequence;
    std::int32_t token;
  };

  /// `places` sequences at a time, at most OpenOptions::sequences, each of up to `capacity` tokens,
  /// prompt and continuation. Takes the memory of all caches.
  static Result<Batch> create(const LanguageModel& model, std::size_t places,
                              std::int64_t capacity) {
    sinter_batch* batch = nullptr;
    if (Status done = detail::status(
            sinter_batch_create(model.model_.get(), places, capacity, nullptr, &batch));
        !done)
      return done.error();
    return Batch(batch, places, model.kept_);
  }

  /// Feeds a prompt into a free place: the number of the sequence. An error if all places are
  /// taken.
  Result<std::int64_t> add(const std::vector<std::int32_t>& prompt,
                           const SamplingOptions& options = {}) {
    detail::Options all(options.progress);
    LanguageModel::set_sampling(all, options);
    if (!all.made()) return all.made().error();
    std::int64_t sequence = 0;
    if (Status done = all.outcome(
            sinter_batch_add(batch_.get(), prompt.data(), prompt.size(), all.get(), &sequence));
        !done)
      return done.error();
    return sequence;
  }
  /// Frees the place of a sequence.
  Status remove(std::int64_t sequence) {
    return detail::status(sinter_batch_remove(batch_.get(), sequence));
  }
  /// The next token of each sequence, in the order in which they were added. An error, before any
  /// token is chosen, if a sequence fills its place: remove it.
  Result<std::vector<Token>> step() {
    std::vector<std::int64_t> sequences(places_);
    std::vector<std::int32_t> tokens(places_);
    std::size_t count = places_;
    if (Status done = detail::status(
            sinter_batch_step(batch_.get(), sequences.data(), tokens.data(), &count));
        !done)
      return done.error();
    std::vector<Token> given;
    for (std::size_t i = 0; i < count; ++i) given.push_back({sequences[i], tokens[i]});
    return given;
  }
  std::size_t places() const { return places_; }
  std::size_t free_places() const { return sinter_batch_free_places(batch_.get()); }

 private:
  Batch(sinter_batch* batch, std::size_t places, std::shared_ptr<CudaOptions> kept)
      : kept_(std::move(kept)), batch_(batch, sinter_batch_free), places_(places) {}

  std::shared_ptr<CudaOptions> kept_;
  detail::Owned<sinter_batch> batch_;
  std::size_t places_;
};

// ---- encoders -------------------------------------------------------------------------------

/// How texts become vectors.
struct EncoderOptions {
  std::string pooling;  ///< "mean" or "cls"; empty: what the model's modules.json says, else "mean"
  std::optional<bool>
      normalize;  ///< vectors of length 1; unset: what modules.json says, else false
};

/// The prompt before each text: a text ("": none), or a prompt of the model by its name. Unset:
/// the model's default prompt, where it has one.
struct PromptChoice {
  std::optional<std::string> text, name;  ///< one of them at most
};

/// Vectors of texts, row after row.
struct TextVectors {
  std::size_t width = 0;
  std::vector<float> values;  ///< as many rows as texts, of `width` numbers
  std::size_t cut = 0;        ///< texts that were truncated
};

/// An encoder of texts, such as BERT, on a device, compiled and loaded, with its tokenizer.
class Encoder {
 public:
  static Result<Encoder> open(const std::string& path, const Device& device,
                              const EncoderOptions& options = {}, const OpenOptions& open = {},
                              const CompileOptions& compile = {}) {
    detail::Options all(compile.progress);
    all.open(open);
    all.compile(compile);
    all.set_if("pooling", options.pooling);
    if (options.normalize) all.set("normalize", *options.normalize ? "true" : "false");
    if (!all.made()) return all.made().error();
    sinter_encoder* encoder = nullptr;
    if (Status done =
            all.outcome(sinter_encoder_open(path.c_str(), device.get(), all.get(), &encoder));
        !done)
      return done.error();
    return Encoder(encoder, device.kept_);
  }

  std::size_t width() const { return sinter_encoder_width(encoder_.get()); }
  /// The model's prompts as JSON: {"prompts": {NAME: TEXT}, "default_prompt_name": NAME or null}.
  Result<std::string> prompts() const {
    char* json = nullptr;
    if (Status done = detail::status(sinter_encoder_prompts(encoder_.get(), &json)); !done)
      return done.error();
    return detail::take_text(json);
  }

  /// `truncate`: a text of more tokens than the model takes keeps its first ones; else it is an
  /// error.
  Result<TextVectors> encode(const std::vector<std::string>& texts, bool truncate = false,
                             const PromptChoice& prompt = {}) {
    detail::Options all;
    all.set("truncate", truncate ? "true" : "false");
    if (prompt.text) all.set("prompt", *prompt.text);
    if (prompt.name) all.set("prompt-name", *prompt.name);
    if (!all.made()) return all.made().error();
    std::vector<const char*> starts;
    for (const std::string& text : texts) {
      if (Status whole = detail::without_zero(text); !whole) return whole.error();
      starts.push_back(text.c_str());
    }
    TextVectors vectors;
    vectors.width = width();
    vectors.values.resize(texts.size() * vectors.width);
    if (Status done =
            all.outcome(sinter_encoder_encode(encoder_.get(), starts.data(), starts.size(),
                                              all.get(), vectors.values.data(), &vectors.cut));
        !done)
      return done.error();
    return vectors;
  }

 private:
  Encoder(sinter_encoder* encoder, std::shared_ptr<CudaOptions> kept)
      : kept_(std::move(kept)), encoder_(encoder, sinter_encoder_free) {}

  std::shared_ptr<CudaOptions> kept_;
  detail::Owned<sinter_encoder> encoder_;
};

// ---- verifying ------------------------------------------------------------------------------

/// How a module is verified.
struct VerifyOptions {
  std::string target;       ///< as in CompileOptions
  bool fast = false;        ///< fast numerics, within their bounds
  std::uint64_t seed = 1;   ///< of random inputs
  std::int64_t repeat = 1;  ///< calls of the list of entries; states keep their values
  SymbolValues symbols;     ///< sizes; others are small
};

/// The result of a comparison of the fused and the unfused plan.
struct Report {
  bool passed = false;
  std::string difference;                 ///< the first value that differs, and how; empty: none
  std::int64_t values = 0, elements = 0;  ///< compared
  std::int64_t fused_launches = 0, unfused_launches = 0;
  /// Largest absolute error of an output against float64; -1: not measured.
  double fused_error = -1, unfused_error = -1;
};

/// Calls every entry of a module in one session on random inputs, fused beside unfused, bit for
/// bit, and beside float64 where that takes no time. A broken promise is a report that has not
/// passed.
inline Result<Report> verify(const Model& model, const Device& device, const Weights& weights = {},
                             const VerifyOptions& options = {}) {
  detail::Options all;
  all.set_if("target", options.target);
  if (options.fast) all.set("numerics", "fast");
  all.set("seed", std::to_string(options.seed));
  all.set("repeat", std::to_string(options.repeat));
  for (const auto& [name, value] : options.symbols)
    all.set(("symbol." + name).c_str(), std::to_string(value));
  if (!all.made()) return all.made().error();
  auto tensors = weights.handle();
  if (!tensors) return tensors.error();
  sinter_report* found = nullptr;
  if (Status done =
          all.outcome(sinter_verify(model.get(), device.get(), tensors->get(), all.get(), &found));
      !done)
    return done.error();
  Report report{sinter_report_passed(found) != 0,    sinter_report_difference(found),
                sinter_report_values(found),         sinter_report_elements(found),
                sinter_report_fused_launches(found), sinter_report_unfused_launches(found),
                sinter_report_fused_error(found),    sinter_report_unfused_error(found)};
  sinter_report_free(found);
  return report;
}

/// Which fusions of a module change a result, as JSON; see sinter_bisect. `options`: names and
/// values of that function.
inline Result<std::string> bisect(
    const Model& model, const Device& device,
    const std::vector<std::pair<std::string, std::string>>& options = {}) {
  detail::Options all;
  for (const auto& [name, value] : options) all.set(name.c_str(), value);
  if (!all.made()) return all.made().error();
  char* report = nullptr;
  if (Status done = all.outcome(sinter_bisect(model.get(), device.get(), all.get(), &report));
      !done)
    return done.error();
  return detail::take_text(report);
}

// ---- kernels of the caller ------------------------------------------------------------------

/// The operands and the result of one evaluation on the host.
class Evaluation {
 public:
  explicit Evaluation(const sinter_evaluation* evaluation) : evaluation_(evaluation) {}

  /// Float elements are double, of higher precision than the kernel's; else they are float.
  bool precise() const { return sinter_evaluation_precise(evaluation_) != 0; }
  std::size_t operands() const { return sinter_evaluation_operand_count(evaluation_); }
  std::vector<std::int64_t> dims(std::size_t operand) const {
    const std::int64_t* dims = sinter_evaluation_dims(evaluation_, operand);
    return {dims, dims + sinter_evaluation_rank(evaluation_, operand)};
  }
  std::vector<std::int64_t> result_dims() const { return dims(operands()); }
  /// Dense elements: float or double for every float type, int32_t for i32, int64_t for i64,
  /// uint8_t for i1.
  template <typename T>
  const T* operand(std::size_t index) const {
    return static_cast<const T*>(sinter_evaluation_operand(evaluation_, index));
  }
  template <typename T>
  T* result() const {
    return static_cast<T*>(sinter_evaluation_result(evaluation_));
  }
  /// Number `index` of the attribute `numbers`.
  double number(std::size_t index) const { return sinter_evaluation_number(evaluation_, index); }

 private:
  const sinter_evaluation* evaluation_;
};

/// A kernel of one's own, as the op `custom`.
struct KernelDescription {
  std::string name;               ///< letters, digits, '_' and '.'; unique in the process
  std::string signature;          ///< the shape rule: "x: float[..., D], w: x[D] -> x[..., D]"
  std::string source;             ///< CUDA text with a __device__ function template
  std::string function;           ///< its name
  std::int64_t threads = 256;     ///< of a block
  std::int64_t row_axes = 1;      ///< the result's first axes, which number the blocks
  std::int64_t shared_bytes = 0;  ///< dynamic shared memory of a block
  std::vector<std::size_t> open_operands;  ///< neighbours may compute them element by element
  bool open_result = false;                ///< neighbours may take the result element by element
  std::size_t numbers = 0;                 ///< how many the attribute `numbers` has
  /// Between kernel and host evaluation, relative to the largest element; 0: the bits are equal.
  double tolerance = 0;
  /// Computes the result on the host; false: failed. May be called by several threads at once.
  std::function<bool(const Evaluation&)> evaluate;
};

/// Registers a kernel for the whole process, until it ends.
inline Status register_kernel(const KernelDescription& description) {
  sinter_kernel* made = nullptr;
  if (Status done = detail::status(
          sinter_kernel_create(description.name.c_str(), description.signature.c_str(),
                               description.source.c_str(), description.function.c_str(), &made));
      !done)
    return done;
  const detail::Owned<sinter_kernel> kernel(made, sinter_kernel_free);
  sinter_kernel_launch(made, description.threads, description.row_axes, description.shared_bytes);
  for (const std::size_t operand : description.open_operands)
    if (Status done = detail::status(sinter_kernel_open_operand(made, operand)); !done) return done;
  if (description.open_result) sinter_kernel_open_result(made);
  sinter_kernel_numbers(made, description.numbers);
  using Evaluate = std::function<bool(const Evaluation&)>;
  auto evaluate = std::make_unique<Evaluate>(description.evaluate);
  if (*evaluate)
    sinter_kernel_evaluation(
        made,
        [](void* user, const sinter_evaluation* evaluation) -> int {
          try {
            return (*static_cast<const Evaluate*>(user))(Evaluation(evaluation)) ? 0 : 1;
          }
          SINTER_DETAIL_CATCH_ALL { return 1; }
        },
        evaluate.get(), description.tolerance);
  Status done = detail::status(sinter_kernel_register(made));
  if (done) evaluate.release();  // needed until the process ends
  return done;
}

}  // namespace sinter

#undef SINTER_DETAIL_CATCH_ALL
