// The exact text of every chat template, and how folders show theirs.
#include "frontends/chat_template.h"

#include <set>

#include "frontends/small_files.h"

namespace sinter::chat_template_test {
namespace {

std::string prompt(const std::string& name, const std::optional<std::string>& system,
                   std::string_view user) {
  const ScratchFolder folder;
  const auto format = read_chat_format(folder.path(), name);
  REQUIRE_MESSAGE(format, format.error().message());
  return format->prompt(system, user);
}

TEST_CASE("chat templates: chatml") {
  CHECK(prompt("chatml", {}, " Hi\n") ==
        "<|im_start|>user\n Hi\n<|im_end|>\n<|im_start|>assistant\n");
  CHECK(prompt("chatml", "Be brief.", "Hi") ==
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
        "<|im_start|>assistant\n");
}

TEST_CASE("chat templates: llama2") {
  CHECK(prompt("llama2", {}, " Hi\n") == "[INST] Hi [/INST]");
  CHECK(prompt("llama2", "Be brief.", " Hi\n") ==
        "[INST] <<SYS>>\nBe brief.\n<</SYS>>\n\n Hi [/INST]");
}

TEST_CASE("chat templates: llama3") {
  CHECK(prompt("llama3", {}, "\tHi\xe2\x80\x83\n") ==
        "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\n");
  CHECK(prompt("llama3", " Be brief. ", "Hi") ==
        "<|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>"
        "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\n");
}

TEST_CASE("chat templates: gemma") {
  CHECK(prompt("gemma", {}, " Hi ") ==
        "<start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\n");
  CHECK(prompt("gemma", "Be brief.", "Hi") ==
        "<start_of_turn>user\nBe brief.\n\nHi<end_of_turn>\n<start_of_turn>model\n");
}

TEST_CASE("chat templates: phi3") {
  CHECK(prompt("phi3", {}, "Hi") == "<|user|>\nHi<|end|>\n<|assistant|>\n");
  CHECK(prompt("phi3", "Be brief.", "Hi") ==
        "<|system|>\nBe brief.<|end|>\n<|user|>\nHi<|end|>\n<|assistant|>\n");
}

TEST_CASE("chat templates: zephyr, with the model's own end token") {
  CHECK(prompt("zephyr", {}, "Hi") == "<|user|>\nHi</s>\n<|assistant|>\n");
  CHECK(prompt("zephyr", "Be brief.", "Hi") ==
        "<|system|>\nBe brief.</s>\n<|user|>\nHi</s>\n<|assistant|>\n");
  const ScratchFolder folder;
  for (const char* eos :
       {R"("<|endoftext|>")", R"({"content": "<|endoftext|>", "lstrip": false})"}) {
    folder.write("tokenizer_config.json", fmt::format(R"({{"eos_token": {}}})", eos));
    const auto format = read_chat_format(folder.path(), "zephyr");
    REQUIRE(format);
    CHECK(format->prompt({}, "Hi") == "<|user|>\nHi<|endoftext|>\n<|assistant|>\n");
    CHECK(format->end() == "<|endoftext|>");
    CHECK(format->markers() == std::vector<std::string>{"<|endoftext|>"});
  }
}

TEST_CASE("chat templates: mistral, of the first tokenizers and of the third") {
  CHECK(prompt("mistral", {}, "Hi") == "[INST] Hi [/INST]");
  CHECK(prompt("mistral", "Be brief.", "Hi") == "[INST] Be brief.\n\nHi [/INST]");
  CHECK(prompt("mistral-v3", {}, "Hi") == "[INST] Hi[/INST]");
  CHECK(prompt("mistral-v3", "Be brief.", "Hi") == "[INST] Be brief.\n\nHi[/INST]");
  CHECK(prompt("mistral-tekken", {}, "Hi") == "[INST]Hi[/INST]");
  CHECK(prompt("mistral-tekken", "Be brief.", "Hi") == "[INST]Be brief.\n\nHi[/INST]");
}

TEST_CASE("chat templates: messages are taken as they are, places in them included") {
  CHECK(prompt("chatml", "{user}", "{system} {eos} {") ==
        "<|im_start|>system\n{user}<|im_end|>\n<|im_start|>user\n{system} {eos} {<|im_end|>\n"
        "<|im_start|>assistant\n");
  CHECK(prompt("llama3", "", " \n") ==
        "<|start_header_id|>system<|end_header_id|>\n\n<|eot_id|>"
        "<|start_header_id|>user<|end_header_id|>\n\n<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\n");
}

TEST_CASE("chat templates: every row can be filled, has its own name and an end") {
  std::set<std::string_view> names;
  for (const ChatTemplate& row : chat_templates()) {
    CHECK(names.insert(row.name).second);
    const ChatFormat format{&row, row.begins};
    CHECK(format.prompt("S", "U").find("S") != std::string::npos);
    CHECK(format.prompt({}, "U").find("U") != std::string::npos);
    CHECK(!format.end().empty());
    for (const std::string& marker : format.markers()) CHECK(!marker.empty());
  }
}

struct Written {
  const char* name;  // of the format; empty if it is none
  bool begins;
  const char* jinja;
};

// Reduced to what matters, in the ways in which model folders write it.
constexpr Written written[] = {
    {"chatml", false,
     "{% for m in messages %}{{'<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>' + "
     "'\\n'}}{% endfor %}"},
    {"chatml", true, "{{bos_token}}{{'<|im_start|>' + m['role'] + m['content'] + '<|im_end|>'}}"},
    {"llama2", true,
     "{% set content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + text %}"
     "{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}"},
    {"llama3", true,
     "{% set content = '<|start_header_id|>' + role + '<|end_header_id|>\\n\\n' + text | trim + "
     "'<|eot_id|>' %}{{ bos_token + content }}"},
    {"gemma", true,
     "{{ bos_token }}{{ '<start_of_turn>' + role + '\\n' + text | trim + '<end_of_turn>\\n' }}"},
    {"phi3", false, "{{'<|user|>\\n' + message['content'] + '<|end|>\\n'}}{{'<|assistant|>\\n'}}"},
    {"zephyr", false,
     "{% if message['role'] == 'user' %}\n{{ '<|user|>\\n' + message['content'] + eos_token }}\n"
     "{{ '<|assistant|>' }}"},
    {"zephyr", false,
     "{{ \"<|user|>\n\" + message[\"content\"] + eos_token }}{{ \"<|assistant|>\" }}"},
    {"zephyr", false, "{{'<|user|>\\n' + message['content'] + '</s>\\n'}}{{ '<|assistant|>\\n' }}"},
    {"mistral", true, "{{ bos_token }}{{ '[INST] ' + message['content'] + ' [/INST]' }}"},
    {"mistral-v3", true, "{{- bos_token }}{{- \"[INST] \" + message[\"content\"] + \"[/INST]\" }}"},
    {"mistral-tekken", true, "{{- bos_token }}{{- '[INST]' + message['content'] + '[/INST]' }}"},
    // Near, but something else.
    {"", false, "{{ '<|im_start|>user<|im_sep|>' + content + '<|im_end|>' }}"},
    {"", false,
     "{{ '<|user|>\\n' + message['content'] + '\\n' }}{{ '<|assistant|>' + eos_token }}"},
    {"", false, "[SYSTEM_PROMPT]{{ system }}[/SYSTEM_PROMPT][INST]{{ text }}[/INST]"},
    {"", false, "### Instruction:\n{{ text }}\n### Response:\n"},
    {"", false, ""},
};

TEST_CASE("chat templates: a folder shows its own") {
  for (const Written& row : written) {
    CAPTURE(row.jinja);
    const auto format = recognize_chat_format(row.jinja);
    REQUIRE(format.has_value() == (std::string_view(row.name) != ""));
    if (!format) continue;
    CHECK(format->form->name == row.name);
    CHECK(format->begins == row.begins);
  }
}

TEST_CASE("chat templates: a system message of the template's own") {
  const auto own = [](std::string_view jinja) {
    const auto format = recognize_chat_format(jinja);
    REQUIRE(format);
    return format->own_system;
  };
  for (const Written& row : written)
    if (*row.name) CHECK(own(row.jinja) == "");
  const std::string turns =
      "{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>' }}";
  CHECK(own("{% if messages[0]['role'] != 'system' %}{{ '<|im_start|>system\\nYou are helpful"
            "<|im_end|>\\n' }}{% endif %}" +
            turns) == "");  // default_system
  CHECK(own("{%- if tools %}{{- '<|im_start|>system\\n' }}{%- endif %}" + turns) == "");
  CHECK(own("{% set system_message = 'Be kind.' %}" + turns) == "Be kind.");
  CHECK(own("{{- \"<|start_header_id|>system<|end_header_id|>\\n\\n\" }}"
            "{{- \"Cutting Knowledge Date: December 2023\\n\" }}{{ '<|eot_id|>' }}") ==
        "Cutting Knowledge Date");
}

// As published with SmolLM2-135M-Instruct.
constexpr const char* kSmolLM2 =
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ "
    "'<|im_start|>system\\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face"
    "<|im_end|>\\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + "
    "'<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}{{ "
    "'<|im_start|>assistant\\n' }}{% endif %}";

TEST_CASE("chat templates: the system message that SmolLM2 adds is known as a whole") {
  const auto format = recognize_chat_format(kSmolLM2);
  REQUIRE(format);
  CHECK(format->own_system == "");
  CHECK(format->default_system ==
        "You are a helpful AI assistant named SmolLM, trained by Hugging Face");
  CHECK_FALSE(format->rewrites_answers);
}

TEST_CASE("chat templates: a system message of the template's own that is not known as a whole") {
  const auto format_of = [](const std::string& text, const char* asks = "role'] != 'system'") {
    const auto format = recognize_chat_format(fmt::format(
        "{{% if messages[0]['{} %}}{{{{ '<|im_start|>system\\n{}<|im_end|>\\n' }}}}{{% endif %}}",
        asks, text));
    REQUIRE(format);
    return *format;
  };
  CHECK(format_of("Be kind.\\nBe brief.").default_system == "Be kind.\nBe brief.");
  for (const char* text :
       {"It\\'s", "a ' + name + ' b", "{{ name }}", " Be kind.", "Be kind.\\n", "tab\\t"}) {
    CAPTURE(text);
    CHECK_FALSE(format_of(text).default_system);
  }
  CHECK_FALSE(format_of("Be kind.", "role'] is defined").default_system);  // added to every one
  CHECK(format_of("Be kind.", "role'] is defined").own_system == "Be kind.");
}

TEST_CASE(
    "chat templates: an answer and a further message, as the published templates write them") {
  const auto further = [](const char* name) {
    const ScratchFolder folder;
    const auto format = read_chat_format(folder.path(), name);
    REQUIRE(format);
    return format->further(" A\n", " Hi ");
  };
  CHECK(further("chatml") ==
        " A\n<|im_end|>\n<|im_start|>user\n Hi <|im_end|>\n<|im_start|>assistant\n");
  CHECK(further("llama2") == " A </s><s>[INST] Hi [/INST]");
  CHECK(further("llama3") ==
        "A<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\n");
  CHECK(further("gemma") ==
        "A<end_of_turn>\n<start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\n");
  CHECK(further("phi3") == " A\n<|end|>\n<|user|>\n Hi <|end|>\n<|assistant|>\n");
  CHECK(further("zephyr") == " A\n</s>\n<|user|>\n Hi </s>\n<|assistant|>\n");
  CHECK(further("mistral") == "");
  const std::string turns = "'<|im_start|>' + m['role'] + m['content'] + '<|im_end|>'";
  for (const char* change : {"m.content.split('</think>')", "m['content'] | trim", "text.strip()"})
    CHECK(recognize_chat_format(turns + change)->rewrites_answers);
  CHECK_FALSE(recognize_chat_format(turns)->rewrites_answers);
}

TEST_CASE("chat templates: where a folder keeps them") {
  const ScratchFolder folder;
  check_error(read_chat_format(folder.path(), ""),
              {folder.path(), "neither", "--chat-template NAME: chatml, llama2"});
  check_error(read_chat_format(folder.path(), "vicuna"),
              {"--chat-template", "\"vicuna\"", "mistral-v3"});
  folder.write("tokenizer_config.json", R"({"chat_template": "<start_of_turn><end_of_turn>"})");
  CHECK(read_chat_format(folder.path(), "")->form->name == "gemma");
  CHECK(read_chat_format(folder.path(), "phi3")->form->name == "phi3");
  // transformers writes int(1e30) for a tokenizer without a limit.
  folder.write("tokenizer_config.json",
               R"({"chat_template": "<start_of_turn><end_of_turn>",
                   "model_max_length": 1000000000000000019884624838656})");
  CHECK(read_chat_format(folder.path(), "")->form->name == "gemma");
  folder.write("tokenizer_config.json",
               R"({"chat_template": [{"name": "tool_use", "template": "x"},
                                     {"name": "default", "template": "<|im_start|><|im_end|>"}]})");
  CHECK(read_chat_format(folder.path(), "")->form->name == "chatml");
  folder.write("chat_template.jinja", "<|start_header_id|> <|eot_id|>");
  CHECK(read_chat_format(folder.path(), "")->form->name == "llama3");
  folder.write("chat_template.jinja", "nothing known");
  check_error(read_chat_format(folder.path(), ""),
              {"chat_template.jinja", "this is none of them", "gemma"});
  folder.write("chat_template.jinja", std::string((1 << 20) + 1, ' '));
  check_error(read_chat_format(folder.path(), ""), {"chat_template.jinja", "1048577", "1048576"});
  std::filesystem::remove(folder.path("chat_template.jinja"));
  for (const char* wrong :
       {R"({"chat_template": 7})", R"({"chat_template": [{"name": "a", "template": "b"}]})",
        R"({"chat_template": [{"template": "b"}]})", R"({"chat_template": "x")", "[]"}) {
    CAPTURE(wrong);
    folder.write("tokenizer_config.json", wrong);
    CHECK_FALSE(read_chat_format(folder.path(), "").has_value());
  }
  folder.write("tokenizer_config.json", R"({"eos_token": 2})");
  check_error(read_chat_format(folder.path(), "zephyr"),
              {"tokenizer_config.json", "/eos_token", "got 2"});
}

}  // namespace
}  // namespace sinter::chat_template_test
