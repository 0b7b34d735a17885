// Forms of kernels that come from a file.
#pragma once

#include <string>

#include "device/tuned_form.h"
#include "ir/error.h"

namespace sinter {

/// Refuses forms that their family cannot have; `path`: of the record that holds them, which the
/// error names with a JSON pointer.
Status check_forms(const TunedForms& forms, const std::string& path);

}  // namespace sinter
