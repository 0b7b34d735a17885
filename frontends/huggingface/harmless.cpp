#include "frontends/huggingface/harmless.h"

#include <llvm/ADT/STLExtras.h>

namespace sinter {

namespace {

constexpr std::string_view kHarmless[] = {
    // Who wrote the file, and how the class is built.
    "_attn_implementation",
    "_attn_implementation_autoset",
    "_commit_hash",
    "_name_or_path",
    "attn_implementation",
    "auto_map",
    "cache_implementation",
    "custom_pipelines",
    "gradient_checkpointing",
    "is_llama_config",
    "name_or_path",
    "output_attentions",
    "output_hidden_states",
    "return_dict",
    "tokenizer_class",
    "torchscript",
    "transformers.js_config",
    "transformers_version",
    "unsloth_fixed",
    "unsloth_version",
    "use_bfloat16",
    "use_cache",
    "use_return_dict",
    // Training.
    "activation_dropout",
    "attention_dropout",
    "attention_probs_dropout_prob",
    "attn_pdrop",
    "chunk_size_feed_forward",
    "classifier_dropout",
    "dropout",
    "embd_pdrop",
    "hidden_dropout",
    "hidden_dropout_prob",
    "init_std",
    "initializer_range",
    "layerdrop",
    "pretraining_tp",
    "resid_pdrop",
    // Heads for other tasks.
    "_num_labels",
    "directionality",
    "finetuning_task",
    "id2label",
    "label2id",
    "num_labels",
    "pooler_fc_size",
    "pooler_num_attention_heads",
    "pooler_num_fc_layers",
    "pooler_size_per_head",
    "pooler_type",
    "problem_type",
    "summary_activation",
    "summary_first_dropout",
    "summary_proj_to_labels",
    "summary_type",
    "summary_use_proj",
    "task_specific_params",
    "tf_legacy_loss",
    // Token ids that do not end a text. Length limits and a width that some files repeat and no
    // class
    // reads; they may disagree with the sizes that count.
    "bos_token_id",
    "cls_token_id",
    "decoder_start_token_id",
    "ff_factor",
    "max_sequence_length",
    "n_ctx",
    "pad_token_id",
    "prefix",
    "sep_token_id",
    "unk_token_id",
    // Attention in float32 is how attention is always computed; a decoder without cross-attention
    // is the same model either way.
    "is_decoder",
    "reorder_and_upcast_attn",
    // Defaults of text generation, which transformers 4 wrote beside the architecture.
    "bad_words_ids",
    "begin_suppress_tokens",
    "diversity_penalty",
    "do_sample",
    "early_stopping",
    "encoder_no_repeat_ngram_size",
    "exponential_decay_length_penalty",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "length_penalty",
    "max_length",
    "min_length",
    "no_repeat_ngram_size",
    "num_beam_groups",
    "num_beams",
    "num_return_sequences",
    "output_scores",
    "remove_invalid_values",
    "repetition_penalty",
    "return_dict_in_generate",
    "suppress_tokens",
    "temperature",
    "top_k",
    "top_p",
    "typical_p",
};

}  // namespace

bool is_harmless_key(std::string_view key) { return llvm::is_contained(kHarmless, key); }

}  // namespace sinter
