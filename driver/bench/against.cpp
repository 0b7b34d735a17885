#include "driver/bench/against.h"

#include <algorithm>

#include "driver/json_lists.h"

namespace sinter {
namespace {

Result<SavedCase> read_case(const JsonView& json) {
  SavedCase one;
  SINTER_LET(name, json["name"].string());
  SINTER_LET(sizes, json["sizes"].object());
  for (const JsonMember& member : *sizes) {
    SINTER_LET(value, json["sizes"][member.key].integer());
    one.sizes.emplace_back(member.key, value);
  }
  SINTER_LET(fused, json["fused"]["median_s"].number(0, kLongestTime));
  SINTER_LET(unfused, json["unfused"]["median_s"].number(0, kLongestTime));
  one.name = std::move(name);
  one.fused_s = fused;
  one.unfused_s = unfused;
  return one;
}

}  // namespace

const SavedCase* SavedBench::find(const BenchCase& one) const {
  const auto at = std::find_if(cases.begin(), cases.end(), [&](const SavedCase& saved) {
    return saved.name == one.name && saved.sizes == one.sizes;
  });
  return at == cases.end() ? nullptr : &*at;
}

Result<SavedBench> read_bench(const std::string& path) {
  SINTER_LET(document, read_json(path, kLargestReport));
  const JsonView root = document.view();
  if (!root["cases"].present() || !root["machine"].present())
    return fail("the file is no benchmark", path, "give what `sinter bench --json` printed");
  SavedBench saved;
  SINTER_LET(model, root["model"].string());
  SINTER_LET(device, root["machine"]["device"].string());
  SINTER_LET(cases, json_list<SavedCase>(root["cases"], read_case));
  saved.model = std::move(model);
  saved.device = std::move(device);
  saved.cases = std::move(cases);
  return saved;
}

}  // namespace sinter
