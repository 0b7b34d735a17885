#include "driver/embed/prompts.h"

#include <algorithm>
#include <filesystem>

#include "frontends/files/bounded_file.h"
#include "frontends/files/json.h"

namespace sinter {
namespace {

constexpr size_t kMaxPrompts = 1000;

const Prompt* find_prompt(const Prompts& prompts, std::string_view name) {
  for (const Prompt& prompt : prompts.all)
    if (prompt.name == name) return &prompt;
  return nullptr;
}

std::string prompt_names(const Prompts& prompts) {
  std::string names;
  for (const Prompt& prompt : prompts.all)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", printable(prompt.name, 60));
  return names;
}

}  // namespace

Result<Prompts> read_prompts(const std::string& folder) {
  // These two names are there in every model.
  Prompts prompts{{{"query", ""}, {"document", ""}}};
  const std::filesystem::path path = std::filesystem::path(folder) / kPromptsFile;
  if (!path_exists(path)) return prompts;
  SINTER_LET(document, read_json(path.string()));
  const JsonView root = document.view();
  SINTER_TRY(root.object());
  SINTER_LET(type, root["model_type"].string_or("SentenceTransformer"));
  if (type != "SentenceTransformer")
    return root["model_type"].mismatch("SentenceTransformer", "give a model of dense vectors");
  if (root["truncate_dim"].present())
    return root["truncate_dim"].mismatch("null", "remove the key, and keep the first numbers");
  if (const JsonView given = root["prompts"]; given.present()) {
    SINTER_LET(members, given.object());
    if (members->size() > kMaxPrompts)
      return given.fail(
          fmt::format("{} prompts, at most {} are read", members->size(), kMaxPrompts));
    for (const JsonMember& member : *members) {
      SINTER_LET(text, given[member.key].string_or(""));
      const auto known =
          std::find_if(prompts.all.begin(), prompts.all.end(),
                       [&](const Prompt& prompt) { return prompt.name == member.key; });
      if (known != prompts.all.end())
        known->text = text;
      else
        prompts.all.push_back({member.key, text});
    }
  }
  const JsonView name = root["default_prompt_name"];
  if (!name.present()) return prompts;
  SINTER_LET(text, name.string());
  if (!find_prompt(prompts, text))
    return name.fail(fmt::format("no prompt is called \"{}\"", printable(text, 60)),
                     "one of: " + prompt_names(prompts));
  prompts.default_name = text;
  return prompts;
}

Result<std::string> choose_prompt(const Prompts& prompts, const std::optional<std::string>& prompt,
                                  const std::optional<std::string>& name) {
  if (prompt && name)
    return fail("a prompt and a prompt's name are given", {}, "give one of them", ExitCode::usage);
  if (prompt) return *prompt;
  const std::optional<std::string>& chosen = name ? name : prompts.default_name;
  if (!chosen) return "";
  if (const Prompt* found = find_prompt(prompts, *chosen)) return found->text;
  return fail(fmt::format("no prompt is called \"{}\"", printable(*chosen, 60)), {},
              prompts.all.empty() ? "the model has none: give the prompt itself"
                                  : "one of: " + prompt_names(prompts),
              ExitCode::usage);
}

}  // namespace sinter
