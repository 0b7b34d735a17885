// A language model that streams its text, and a generation that the caller ends.
//   language_model MODEL [PROMPT]
#include <sinter/sinter.h>

#include <algorithm>
#include <cstdio>

namespace {

int failed(const sinter::Error& error) {
  std::fprintf(stderr, "%s\n", error.message.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: language_model MODEL [PROMPT]\n");
    return 2;
  }
  const auto device = sinter::Device::open("auto");
  if (!device) return failed(device.error());
  sinter::CompileOptions compile;
  compile.progress = [](std::string_view stage, std::int64_t done, std::int64_t total) {
    if (done == total)
      std::fprintf(stderr, "%.*s: done\n", static_cast<int>(stage.size()), stage.data());
    return true;  // false would cancel
  };
  auto model = sinter::LanguageModel::open(argv[1], *device, {}, compile);
  if (!model) return failed(model.error());
  const char* const text = argc > 2 ? argv[2] : "Long ago, Mira the baker";
  const auto prompt = model->encode(text);
  if (!prompt) return failed(prompt.error());
  std::printf("%s", text);

  sinter::GenerateOptions options;
  options.count = 48;
  options.on_token = [](std::size_t, std::int32_t, std::string_view text) {
    std::printf("%.*s", static_cast<int>(text.size()), text.data());
    std::fflush(stdout);
    return true;
  };
  const auto whole = model->generate({*prompt}, options);
  if (!whole) return failed(whole.error());
  std::printf("\n");

  // The caller may end a generation at any token.
  int left = 5;
  options.on_token = [&](std::size_t, std::int32_t, std::string_view) { return --left > 0; };
  const auto cut = model->generate({*prompt}, options);
  if (!cut) return failed(cut.error());
  std::printf("cut after %zu tokens\n", (*cut)[0].size());
  const bool same_beginning = std::equal((*cut)[0].begin(), (*cut)[0].end(), (*whole)[0].begin());
  return (*cut)[0].size() == 5 && same_beginning ? 0 : 1;
}
