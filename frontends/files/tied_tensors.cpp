#include "frontends/files/tied_tensors.h"

#include <algorithm>

namespace sinter {

namespace {

class TiedTensors : public TensorSource {
 public:
  TiedTensors(std::shared_ptr<const TensorSource> source, std::string table, std::string head,
              std::string place)
      : source_(std::move(source)),
        table_(std::move(table)),
        head_(std::move(head)),
        place_(std::move(place)) {}

  std::optional<TensorType> find(std::string_view name) const override {
    return source_->find(name);
  }
  std::vector<std::string> names() const override { return source_->names(); }
  std::vector<std::string> files() const override { return source_->files(); }
  Error missing(std::string_view name) const override { return source_->missing(name); }
  Status read(std::string_view name, std::span<std::byte> out) const override {
    SINTER_TRY(source_->read(name, out));
    return name == table_ ? compare(out) : Status();
  }

 private:
  Status compare(std::span<const std::byte> table) const {
    if (source_->find(head_) != source_->find(table_)) return differs();
    std::vector<std::byte> head(table.size());
    SINTER_TRY(source_->read(head_, head));
    return std::ranges::equal(head, table) ? Status() : differs();
  }
  Status differs() const {
    return fail(fmt::format("tensor {} differs from {}, but the config says that they are one",
                            printable(head_), printable(table_)),
                place_,
                fmt::format("say tie_word_embeddings: false (in a spec, tied: false), or remove {}",
                            printable(head_)));
  }

  std::shared_ptr<const TensorSource> source_;
  std::string table_, head_, place_;
};

}  // namespace

std::shared_ptr<const TensorSource> compare_tied(std::shared_ptr<const TensorSource> source,
                                                 std::string table, std::string head,
                                                 std::string place) {
  return std::make_shared<TiedTensors>(std::move(source), std::move(table), std::move(head),
                                       std::move(place));
}

}  // namespace sinter
