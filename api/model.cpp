#include "api/model.h"

#include "api/module.h"
#include "api/options.h"
#include "frontends/check_tensors.h"
#include "ir/text.h"
#include "ir/verifier.h"

namespace sinter {
namespace {

std::unique_ptr<sinter_model> make_model(OpenedModel opened) {
  auto model = std::make_unique<sinter_model>();
  model->model = std::move(opened);
  for (const auto& [name, type] : file_tensors(model->model.module))
    model->tensors.emplace_back(name, to_string(type, {}));
  return model;
}

/// A module that came from memory.
OpenedModel opened_module(Module module, std::string origin) {
  OpenedModel opened;
  opened.module = std::move(module);
  opened.origin = std::move(origin);
  return opened;
}

}  // namespace
}  // namespace sinter

using namespace sinter;

sinter_error* sinter_model_open(const char* path, const sinter_options* options,
                                sinter_model** model) {
  return make_handle(model, [&]() -> Result<std::unique_ptr<sinter_model>> {
    SINTER_TRY(require(path, "path"));
    OptionReader reader(options);
    SINTER_LET(open, read_open_options(reader));
    SINTER_TRY(reader.finish());
    SINTER_LET(opened, open_model(path, open));
    auto made = make_model(std::move(opened));
    made->path = path;
    made->random_weights = open.random_weights;
    return made;
  });
}

sinter_error* sinter_model_parse(const char* text, size_t size, const char* file,
                                 sinter_model** model) {
  return make_handle(model, [&]() -> Result<std::unique_ptr<sinter_model>> {
    if (size > 0) SINTER_TRY(require(text, "text"));
    const std::string name = file ? file : "module";
    SINTER_LET(module, parse_module({text, size}, name));
    return make_model(opened_module(std::move(module), name));
  });
}

sinter_error* sinter_model_build(const sinter_module* module, sinter_model** model) {
  return make_handle(model, [&]() -> Result<std::unique_ptr<sinter_model>> {
    SINTER_TRY(require(module, "module"));
    return in_turn(module->in_use, [&]() -> Result<std::unique_ptr<sinter_model>> {
      SINTER_TRY(verify(module->module));
      return make_model(opened_module(module->module, "module " + printable(module->module.name)));
    });
  });
}

const char* sinter_model_name(const sinter_model* model) {
  return model ? model->model.module.name.c_str() : nullptr;
}

sinter_error* sinter_model_text(const sinter_model* model, char** text) {
  return give_text(text, [&]() -> Result<std::string> {
    SINTER_TRY(require(model, "model"));
    return print_module(model->model.module);
  });
}

size_t sinter_model_tensor_count(const sinter_model* model) {
  return model ? model->tensors.size() : 0;
}
const char* sinter_model_tensor_name(const sinter_model* model, size_t index) {
  return model && index < model->tensors.size() ? model->tensors[index].first.c_str() : nullptr;
}
const char* sinter_model_tensor_type(const sinter_model* model, size_t index) {
  return model && index < model->tensors.size() ? model->tensors[index].second.c_str() : nullptr;
}
void sinter_model_free(sinter_model* model) { free_handle(model); }
