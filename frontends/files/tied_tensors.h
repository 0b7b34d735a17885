// The weights of a tied model whose files hold an output projection too.
#pragma once

#include <memory>

#include "ir/tensor_source.h"

namespace sinter {

/// `source`, in which the tensor `head` must have the type and the bytes of `table`: reading the
/// table compares them, and fails where they differ, with an error that names both and `place`.
std::shared_ptr<const TensorSource> compare_tied(std::shared_ptr<const TensorSource> source,
                                                 std::string table, std::string head,
                                                 std::string place);

}  // namespace sinter
