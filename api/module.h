// A module that a program builds op by op.
#pragma once

#include <memory>
#include <set>

#include "api/border.h"
#include "ir/graph.h"

struct sinter_graph {
  sinter_module* module;
  size_t entry;
  std::set<std::string, std::less<>> names;  // of ops and inputs
  uint32_t next = 0;                         // for names of ops that have none
};

struct sinter_module {
  sinter::Module module;
  std::vector<std::unique_ptr<sinter_graph>> graphs;  // one an entry
  mutable std::atomic<bool> in_use = false;           // the module or one of its graphs
};
