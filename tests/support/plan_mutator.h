// Changes of plan.json that know what its fields mean.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <random>

namespace sinter::test {

/// Changes a plan as somebody would who wants it to pass the checker: fields alone and together,
/// then what follows from others is made to fit, mostly: the lives and sizes of buffers, slots,
/// names of outputs, parameters of kernels, the fingerprint of the weights. Buffers that no step
/// writes are left out.
class PlanMutator {
 public:
  using Json = nlohmann::ordered_json;
  explicit PlanMutator(uint64_t seed) : random_(seed) {}

  /// One to three changes.
  void mutate(Json& plan);

 private:
  size_t below(size_t count) { return count == 0 ? 0 : random_() % count; }
  bool one_in(size_t count) { return below(count) == 0; }
  Json& any(Json& list) { return list.at(below(list.size())); }  // of an empty one an exception
  Json& any_entry() { return any(plan()["entries"]); }
  Json& plan() { return *plan_; }

  // Each changes one thing; what it asks for may not be there.
  void change_field();
  void change_number(Json& number);
  void change_text(Json& text);
  void change_list(Json& list);
  void redirect();
  void add_twin();
  void alias();
  void cut();
  void retype();
  void change_steps();
  void change_group();
  void change_interface();
  void change_row_checks();
  void change_product();
  void exchange();

  /// A size such as others in the plan have.
  std::string size();
  /// The numbers of buffers that an entry's steps, interface and checks name.
  static std::vector<Json*> references(Json& entry);
  void point_at(Json& reference, Json& entry);

  void repair();
  void repair_lives(Json& entry);
  void repair_sizes(Json& entry);
  void leave_out_unwritten(Json& entry);
  void repair_kernels();

  std::mt19937_64 random_;
  Json* plan_ = nullptr;
};

}  // namespace sinter::test
