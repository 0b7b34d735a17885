// The text of kernels that read before they wait: what was complete is visible before the first
// read, nothing else is read and nothing written before the wait, and the next kernel may be
// launched where the kernel's overlap says so.
#include <doctest/doctest.h>

#include <cctype>
#include <numeric>

#include "codegen/groups.h"
#include "codegen/lowering/launch_order.h"
#include "ir/attention_operands.h"
#include "ir/grouping.h"
#include "kernels/gemv/prologue.h"

namespace sinter::early_text_test {
namespace {

/// group_symbols(), all at least 1: a kernel without tokens would not wait.
std::vector<Symbol> symbols() {
  std::vector<Symbol> list = group_symbols();
  for (Symbol& symbol : list) symbol.low = symbol.multiple;
  return list;
}

/// Where `name` stands in `text` as a word.
std::vector<size_t> places(const std::string& text, const std::string& name) {
  const auto in_word = [&](size_t at) {
    return at < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[at])) || text[at] == '_');
  };
  std::vector<size_t> found;
  for (size_t at = 0; (at = text.find(name, at)) != text.npos; at += name.size())
    if (!(at > 0 && in_word(at - 1)) && !in_word(at + name.size())) found.push_back(at);
  return found;
}

size_t only_place(const std::string& text, const std::string& name) {
  const std::vector<size_t> found = places(text, name);
  REQUIRE_MESSAGE(found.size() == 1, name);
  return found[0];
}

/// The text between the first `begin` and the `end` after it.
std::string between(const std::string& text, std::string_view begin, std::string_view end) {
  size_t at = text.find(begin);
  REQUIRE_MESSAGE(at != text.npos, std::string(begin));
  at += begin.size();
  return text.substr(at, text.find(end, at) - at);
}

/// How a kernel was launched: in clusters, or without.
enum class Launched { in_clusters, alone };

/// The kernel's body in one of its forms: without clusters attention calls a function.
std::string body_of(const std::string& source, Launched launched) {
  const std::string body = between(source.substr(source.find("extern \"C\"")), ") {\n", "\n}\n");
  if (source.find("__device__ __noinline__") == source.npos) return body;
  const std::string called =
      between(source.substr(source.find("__device__ __noinline__")), ") {\n", "\n}\n");
  const std::string choice = "  if (cluster_nctaid_x() == 1) {\n";
  const size_t at = body.find(choice);
  REQUIRE((at == body.npos) == (source.find("InClusters") == source.npos));
  if (at == body.npos) return body.substr(0, body.find("  attend_alone(")) + called;
  return body.substr(0, at) +
         (launched == Launched::alone ? called : between(body, "  } else {\n", "\n  }"));
}

class EarlyText {
 public:
  EarlyText(const GroupText& text, const Overlap& overlap, Launched launched = Launched::alone)
      : overlap_(overlap) {
    auto kernel = emit_kernel(make_group(text, DType::bf16, 64), text.parts(), symbols(),
                              *find_device("sm_90a"), overlap);
    REQUIRE_MESSAGE(kernel.has_value(), (kernel ? "" : kernel.error().message()));
    group_ = kernel->group;
    body_ = body_of(kernel->source, launched);
    // The accessors' memory is addresses alone.
    if (const size_t memory = body_.find("const PortMemory memory"); memory != body_.npos)
      body_.erase(memory, body_.find('\n', memory) - memory);
    fence_ = only_place(body_, "fence_acq_rel_gpu");
    wait_ = only_place(body_, "griddepcontrol_wait");
  }

  /// Fences, the wait and the launch of the next kernel.
  void check_order() const {
    CHECK(fence_ < wait_);
    const size_t next = only_place(body_, "griddepcontrol_launch_dependents");
    CHECK((next > wait_) == overlap_.triggers_after_wait);
    if (!overlap_.triggers_after_wait) CHECK(next < fence_);
    // After the wait but not after what the kernel then does.
    if (overlap_.triggers_after_wait)
      CHECK(body_.substr(wait_, next - wait_).find_first_not_of("griddepcontrol_wait(); \n") ==
            std::string::npos);
  }

  /// Statements that read an operand which kernels of the plan write.
  void check_reads(const std::vector<std::string>& reads) const {
    bool any = false;
    for (const std::string& read : reads)
      for (size_t at : places(body_, read)) {
        CHECK_MESSAGE(at > fence_, read);
        any |= at < wait_;
      }
    CHECK(any);
  }

  /// Inputs that are not read early appear after the wait, except inputs whose address alone the
  /// text takes.
  void check_reads_after(llvm::ArrayRef<uint32_t> addressed) const {
    for (uint32_t k = 0; k < group_.inputs.size(); ++k) {
      const bool early = llvm::is_contained(overlap_.early_inputs, k) ||
                         llvm::is_contained(overlap_.early_caches, k);
      if (!early && !llvm::is_contained(addressed, k)) check_after(fmt::format("x{}", k), wait_);
    }
  }
  void check_after(const std::string& name, size_t place) const {
    for (size_t at : places(body_, name)) CHECK_MESSAGE(at > place, (name + " in\n" + body_));
  }
  /// Results are stored after the wait, the operand that a prologue computes before it.
  void check_stores() const {
    const size_t product = only_place(body_, "run");
    size_t results = 0;
    for (const std::string store : {"store", "store_chunk"})
      for (size_t at : places(body_, store)) {
        results += at > product;
        if (at > product) {
          CHECK_MESSAGE(at > wait_, body_);
        } else {
          CHECK_MESSAGE(body_.compare(at + store.size(), 9, "(operand ") == 0, body_);
          CHECK_MESSAGE(at > body_.find("product.operand()"), body_);
        }
      }
    CHECK(results > 0);
  }
  size_t wait() const { return wait_; }

 private:
  Overlap overlap_;
  Graph group_;
  std::string body_;
  size_t fence_ = 0, wait_ = 0;
};

}  // namespace

TEST_CASE("attention that reads its caches early") {
  for (const GroupText& text : kClosedGroups) {
    const Graph group = make_group(text, DType::bf16, 64);
    const Op& op = group[group.outputs[0]];
    if (order_of(op) != Order::decode_attention) continue;
    CAPTURE(std::string(text.name));
    std::vector<uint32_t> numbers;  // inputs of the row numbers
    for (ValueId id : {op.operands[3], op.operands[4]})
      for (uint32_t input : row_number_inputs(group, id))
        if (!llvm::is_contained(numbers, input)) numbers.push_back(input);
    for (const bool triggers_after_wait : {false, true})
      for (const Launched launched : {Launched::in_clusters, Launched::alone}) {
        const EarlyText early(
            text,
            {.waits = true,
             .triggers_after_wait = triggers_after_wait,
             .early_inputs = numbers,
             .early_caches = {*input_of(group, op.operands[1]), *input_of(group, op.operands[2])}},
            launched);
        early.check_order();
        early.check_reads({"start_early"});
        // The constructor is given the addresses of the queries and of the mask.
        llvm::SmallVector<uint32_t, 2> addressed = {*input_of(group, op.operands[0])};
        if (op.operands.size() == 6) addressed.push_back(*input_of(group, op.operands[5]));
        early.check_reads_after(addressed);
        early.check_after("run", early.wait());
        early.check_after("y0", early.wait());
      }
  }
}

TEST_CASE("products that make their operands early") {
  int groups = 0;
  for (const GroupText& text : kGemvGroups) {
    const Graph group = make_group(text, DType::bf16, 64);
    ValueId product;
    for (uint32_t i = 0; i < group.size(); ++i)
      if (op_class(group.ops()[i]) == OpClass::anchor) product = {i};
    const std::vector<bool> prologue = gemv_prologue(group, product);
    if (llvm::any_of(group.outputs, [&](ValueId id) { return prologue[id.index]; })) continue;
    ++groups;
    CAPTURE(std::string(text.name));
    std::vector<uint32_t> all(group.inputs.size()), of_prologue;
    std::iota(all.begin(), all.end(), 0u);
    for (uint32_t k : all)
      if (prologue[group.inputs[k].index]) of_prologue.push_back(k);
    for (const std::vector<uint32_t>& inputs : {of_prologue, all})
      for (const bool triggers_after_wait : {false, true}) {
        const EarlyText early(text, {.waits = true,
                                     .triggers_after_wait = triggers_after_wait,
                                     .early_inputs = inputs,
                                     .early_caches = {}});
        early.check_order();
        early.check_reads({"load", "load_chunk", "take", "run"});
        early.check_reads_after({*input_of(group, group[product].operands[1])});
        early.check_stores();
      }
  }
  CHECK(groups > 3);
}

}  // namespace sinter::early_text_test
