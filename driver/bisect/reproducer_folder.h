// The folder of a reproducer, which a later search may replace.
#pragma once

#include <string>

#include "ir/error.h"

namespace sinter {

/// May a reproducer be written to `folder`? It is absent in a folder that exists, empty, or holds
/// an earlier reproducer and nothing else: model.sir, its tensors and reproduce.sh beside an
/// about.json of Sinter; program.py beside operands.pt, of `sinter.bisect` in Python; folders op1,
/// fusion1, ... of these.
Status check_reproducer_folder(const std::string& folder);

}  // namespace sinter
