#include "api/border.h"
#include "frontends/files/json.h"
#include "ir/packed_codes.h"
#include "ir/verify_graph.h"
#include "kernels/attention_gradient.h"

namespace sinter {
namespace {

JsonValue object(JsonValue::Object members) { return JsonValue(std::move(members)); }
JsonValue number(int64_t value) { return JsonValue(value); }

JsonValue limits() {
  return object({{"axes", number(kMaxAxes)}, {"gradient_width", number(max_gradient_width())}});
}

JsonValue op_facts(std::string op_class, int64_t least, int64_t most) {
  return object({{"class", JsonValue(std::move(op_class))},
                 {"operands", JsonValue(JsonValue::Array{number(least), number(most)})}});
}

JsonValue ops() {
  JsonValue::Object rows;
#define SINTER_OP(name, op_class, least, most, ...) \
  rows.push_back({#name, op_facts(#op_class, least, most)});
#define SINTER_ELEMENTWISE(name, operands, ...) \
  rows.push_back({#name, op_facts("elementwise", operands, operands)});
#include "ir/ops.def"
  return object(std::move(rows));
}

JsonValue packed_codes() {
  JsonValue::Object bits;
#define SINTER_CODE(name, bits_of_code, ...) bits.push_back({#name, number(bits_of_code)});
#include "ir/formats.def"
  return object({{"chunk", number(kCodeChunk)},
                 {"lanes", number(kCodeLanes)},
                 {"tail_bytes", number(kCodeTail)},
                 {"bits", object(std::move(bits))}});
}

}  // namespace
}  // namespace sinter

using namespace sinter;

sinter_error* sinter_facts(char** json) {
  return give_text(json, []() -> Result<std::string> {
    return to_text(object({{"limits", limits()}, {"ops", ops()}, {"codes", packed_codes()}}));
  });
}
