// The variants of an entry cover their symbol's values, and a call has the same inputs, outputs and
// written states whichever of them it meets.
#include <map>

#include "ir/variants.h"
#include "plan/check_parts.h"

namespace sinter::checker {
namespace {

class Variants {
 public:
  Variants(const Program& program, llvm::ArrayRef<EntryPlan> entries)
      : program_(program), entries_(entries) {}

  Status run() const {
    std::vector<std::optional<SymbolRange>> ranges;
    for (const EntryPlan& entry : entries_) ranges.push_back(entry.range);
    if (const auto fault = fault_of_ranges(ranges, program_.symbols)) return bad(*fault);
    for (const EntryPlan& other : entries_.drop_front()) {
      SINTER_TRY(equal("inputs", inputs(entries_[0]), inputs(other)));
      SINTER_TRY(equal("outputs", outputs(entries_[0]), outputs(other)));
      SINTER_TRY(equal("written states", states(entries_[0]), states(other)));
    }
    return {};
  }

 private:
  Status equal(std::string_view what, const std::string& a, const std::string& b) const {
    if (a == b) return {};
    return bad(fmt::format("has a variant with the {} \"{}\" and one with \"{}\"", what,
                           printable(a), printable(b)));
  }

  std::string type(const EntryPlan& entry, uint32_t buffer) const {
    return to_string(entry.buffers[buffer].type, program_.symbols);
  }

  std::string inputs(const EntryPlan& entry) const {
    std::string text;
    for (uint32_t id : entry.inputs)
      text += fmt::format("%{}: {}; ", entry.buffers[id].value, type(entry, id));
    return text;
  }

  std::string outputs(const EntryPlan& entry) const {
    std::string text;
    for (size_t i = 0; i < entry.outputs.size(); ++i)
      text += fmt::format("%{}: {}; ", entry.output_names[i], type(entry, entry.outputs[i]));
    return text;
  }

  std::string states(const EntryPlan& entry) const {
    std::map<uint32_t, uint32_t> versions;  // the newest of each written state
    for (const Buffer& buffer : entry.buffers)
      if (buffer.place == Buffer::Place::state && buffer.version > 0)
        versions[buffer.index] = std::max(versions[buffer.index], buffer.version);
    std::string text;
    for (const auto& [state, version] : versions)
      text += fmt::format("%{}, {} times; ", program_.states[state].name, version);
    return text;
  }

  tl::unexpected<Error> bad(std::string what) const {
    return violation(std::move(what), "entry " + printable(entries_[0].name));
  }

  const Program& program_;
  llvm::ArrayRef<EntryPlan> entries_;
};

}  // namespace

Status check_variants(const Program& program) {
  for (size_t i = 0; i < program.entries.size(); ++i)
    if (i == 0 || program.entries[i].name != program.entries[i - 1].name)
      SINTER_TRY(Variants(program, variants_of(program.entries, program.entries[i].name)).run());
  return {};
}

}  // namespace sinter::checker
