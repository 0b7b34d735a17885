#include "kernels/check_forms.h"

#include "ir/json_pointer.h"
#include "kernels/registry.h"

namespace sinter {

Status check_forms(const TunedForms& forms, const std::string& path) {
  for (const auto& [name, own] : forms) {
    const auto family = llvm::find_if(kernel_families(),
                                      [&](const KernelFamily* one) { return one->name == name; });
    if (family == kernel_families().end() || !(*family)->tuning)
      return fail("no kernel family of this name has forms",
                  fmt::format("{}:/forms{}", path, json_pointer_step(name)),
                  "write the record anew by tuning");
    for (const auto& [key, form] : own)
      if (Status valid = (*family)->tuning->check(form); !valid) {
        const std::string& number = valid.error().where;
        return fail(
            valid.error().what,
            fmt::format("{}:/forms{}{}{}", path, json_pointer_step(name), json_pointer_step(key),
                        number.empty() ? "" : json_pointer_step(number)),
            "write the record anew by tuning");
      }
  }
  return {};
}

}  // namespace sinter
