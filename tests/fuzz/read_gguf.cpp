// GGUF files.
#include "driver/inspect/gguf_report.h"
#include "frontends/gguf_bytes.h"
#include "fuzz/reading.h"

namespace sinter::fuzz {

Outcome read_gguf(std::string_view bytes) {
  static MemoryFile memory;
  memory.put(bytes);
  const Result<GgufFile> file = GgufFile::open(memory.path());
  if (!file) return refused(file.error());
  // The places of tensors belong to what is read, and so do the elements of arrays.
  std::string read = gguf_text(*file);
  for (const auto& [key, value] : file->metadata()) {
    if (const auto* strings = std::get_if<GgufStrings>(&value))
      for (size_t i = 0; i < strings->size(); ++i) read += printable((*strings)[i]) + '\n';
    if (const auto* numbers = std::get_if<GgufNumbers>(&value))
      for (size_t i = 0; i < numbers->size(); ++i)
        read += numbers->type() == GgufValueType::f32 || numbers->type() == GgufValueType::f64
                    ? fmt::format("{}\n", numbers->real(i))
                    : fmt::format("{}\n", numbers->integer(i));
  }
  for (const GgufTensor& tensor : file->tensors()) {
    std::vector<std::byte> data(tensor.bytes);
    if (auto filled = file->read(tensor, 0, data); !filled) return refused(filled.error());
    const std::string_view text(reinterpret_cast<const char*>(data.data()), data.size());
    read += fmt::format("{} {} {:x}\n", printable(tensor.name), tensor.begin, hash_of(text));
  }
  return read_as(std::move(read));
}

std::vector<std::string> gguf_seeds() {
  GgufBytes bytes;
  bytes.string("general.architecture", "llama").number<uint32_t>("llama.block_count", 4, 2);
  bytes.number<float>("llama.rope.freq_base", 6, 10000).number<uint8_t>("tokenizer.add_bos", 7, 1);
  const std::string words = GgufBytes::text("a") + GgufBytes::text("b c");
  bytes.array("tokenizer.ggml.tokens", 8, 2, words);
  bytes.array("tokenizer.ggml.scores", 6, 2, bytes_of_number(-1.0F) + bytes_of_number(0.5F));
  bytes.tensor("blk.0.attn_q.weight", 12, {256, 2}, 288).tensor("output_norm.weight", 0, {5}, 20);
  return {bytes.file(), GgufBytes(2).tensor("a", 2, {32}, 18).file()};
}

}  // namespace sinter::fuzz
