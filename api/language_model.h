// The handle of a language model, for the functions that continue texts with it.
#pragma once

#include "api/device.h"
#include "api/options.h"
#include "driver/ready_plan.h"
#include "driver/text.h"

struct sinter_language_model {
  ~sinter_language_model() {
    const sinter::CudaContextGuard guard(device->cuda_api());
    ready = {};
  }

  std::shared_ptr<sinter::Device> device;
  std::string path, chat_template;
  std::shared_ptr<const sinter::OpenedModel> model;  // its batches read it too
  sinter::ReadyPlan ready;
  std::optional<sinter::Tokenizer> tokenizer;
  /// A function that runs the model; shared with its batches, whose products work in the same
  /// memory.
  std::shared_ptr<std::atomic<bool>> in_use = std::make_shared<std::atomic<bool>>(false);
};
