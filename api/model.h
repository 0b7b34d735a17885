// A model that was opened, parsed or built.
#pragma once

#include "api/border.h"
#include "driver/opened_model.h"

struct sinter_model {
  sinter::OpenedModel model;
  std::string path;  // as it was opened; empty: from a text or a builder
  std::optional<uint64_t> random_weights;
  std::vector<std::pair<std::string, std::string>> tensors;  // names and types
};
