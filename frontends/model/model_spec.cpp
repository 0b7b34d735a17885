#include "frontends/model/model_spec.h"

#include <array>

namespace sinter {

namespace {

constexpr std::array kActivations = {OpKind::gelu, OpKind::gelu_tanh, OpKind::quick_gelu,
                                     OpKind::silu, OpKind::relu,      OpKind::sigmoid,
                                     OpKind::tanh};

}  // namespace

llvm::ArrayRef<OpKind> activation_kinds() { return kActivations; }

std::string activation_list() {
  std::string list;
  for (OpKind kind : kActivations)
    list += fmt::format("{}{}", list.empty() ? "" : ", ", op_info(kind).name);
  return list;
}

std::string_view to_string(NormKind kind) {
  switch (kind) {
    case NormKind::layer_norm:
      return "layer_norm";
    case NormKind::rms_norm:
      return "rms_norm";
    case NormKind::rms_norm_wide:
      return "rms_norm_wide";
    case NormKind::rms_norm_plus_one:
      return "rms_norm_plus_one";
  }
  return "";
}

std::string_view to_string(ResidualForm form) {
  return form == ResidualForm::sequential ? "sequential" : "parallel";
}

std::string_view to_string(NormPlace place) {
  switch (place) {
    case NormPlace::before:
      return "before";
    case NormPlace::after:
      return "after";
    case NormPlace::branch:
      return "branch";
    case NormPlace::both:
      return "both";
  }
  return "";
}

std::string_view to_string(QkNorm norm) {
  switch (norm) {
    case QkNorm::none:
      return "none";
    case QkNorm::head:
      return "head";
    case QkNorm::projection:
      return "projection";
  }
  return "";
}

std::string_view to_string(Routing routing) {
  return routing == Routing::softmax_first ? "softmax_first" : "choice_first";
}

std::string_view to_string(RopeScaling scaling) {
  switch (scaling) {
    case RopeScaling::none:
      return "none";
    case RopeScaling::linear:
      return "linear";
    case RopeScaling::llama3:
      return "llama3";
    case RopeScaling::yarn:
      return "yarn";
    case RopeScaling::longrope:
      return "longrope";
  }
  return "";
}

}  // namespace sinter
