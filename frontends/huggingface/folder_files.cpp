#include "frontends/huggingface/folder_files.h"

#include <filesystem>

#include "frontends/files/bounded_file.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;

constexpr FolderFile kFolderFiles[] = {
    // The model.
    {"config.json", FileUse::read},
    {"generation_config.json", FileUse::read},
    {"model.safetensors", FileUse::read},
    {"model.safetensors.index.json", FileUse::read},
    {"quantize_config.json", FileUse::read},
    {"hf_quant_config.json", FileUse::read},
    {"pytorch_model.bin", FileUse::ignored_beside, "model.safetensors"},
    {"pytorch_model.bin.index.json", FileUse::ignored_beside, "model.safetensors.index.json"},
    {"adapter_config.json", FileUse::refused},
    {"adapter_model.safetensors", FileUse::ignored},  // without its config it is none
    {"adapter_model.bin", FileUse::ignored},
    {"modelcard.json", FileUse::ignored},
    // The tokenizer.
    {"tokenizer.json", FileUse::read},
    {"tokenizer_config.json", FileUse::read},
    {"special_tokens_map.json", FileUse::read},
    {"added_tokens.json", FileUse::read},
    {"tokenizer.model", FileUse::ignored_beside, "tokenizer.json"},
    {"vocab.txt", FileUse::ignored_beside, "tokenizer.json"},
    {"vocab.json", FileUse::ignored_beside, "tokenizer.json"},
    {"merges.txt", FileUse::ignored_beside, "tokenizer.json"},
    // Vocabularies that are not read: without a tokenizer.json the folder has no tokenizer.
    {"tiktoken.model", FileUse::ignored},
    {"tekken.json", FileUse::ignored},
    {"spiece.model", FileUse::ignored},
    {"spm.model", FileUse::ignored},
    {"sentencepiece.bpe.model", FileUse::ignored},
    // Conversations.
    {"chat_template.jinja", FileUse::read},
    {"additional_chat_templates", FileUse::read},
    {"chat_template.json", FileUse::ignored},  // of a processor of images and sounds
    // Images and sounds.
    {"preprocessor_config.json", FileUse::ignored},
    {"video_preprocessor_config.json", FileUse::ignored},
    {"processor_config.json", FileUse::ignored},
    {"audio_tokenizer_config.json", FileUse::ignored},
    // sentence-transformers.
    {"modules.json", FileUse::read},
    {"config_sentence_transformers.json", FileUse::read},
    {"sentence_bert_config.json", FileUse::read},
    {"sentence_roberta_config.json", FileUse::read},
    {"sentence_distilbert_config.json", FileUse::read},
    {"sentence_camembert_config.json", FileUse::read},
    {"sentence_albert_config.json", FileUse::read},
    {"sentence_xlm-roberta_config.json", FileUse::read},
    {"sentence_xlnet_config.json", FileUse::read},
    {"router_config.json",
     FileUse::ignored},  // of a module that modules.json names, which is refused
};

}  // namespace

std::span<const FolderFile> folder_files() { return kFolderFiles; }

std::vector<std::string> ignored_files(const std::string& folder) {
  std::vector<std::string> names;
  const fs::path root(folder);
  for (const FolderFile& file : kFolderFiles) {
    const bool counts = file.use == FileUse::ignored_beside ? !path_exists(root / file.other)
                                                            : file.use != FileUse::ignored;
    if (!counts && path_exists(root / file.name)) names.emplace_back(file.name);
  }
  return names;
}

}  // namespace sinter
