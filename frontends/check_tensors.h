// The tensors that the weights of a module are made of, and those that a file holds.
#pragma once

#include <map>
#include <string>

#include "ir/graph.h"
#include "ir/tensor_source.h"

namespace sinter {

/// Names and types of the tensors that the module's `file` ops read. Two ops that read one tensor
/// as different types leave the type of one of them.
std::map<std::string, TensorType, std::less<>> file_tensors(const Module& module);

/// Fails unless the source has every tensor that a weight of the module reads, of exactly the type
/// that the weight says, and lists no other tensor. Errors name the weight, the tensor, both types
/// and `place`, the file or folder of the source.
Status check_tensors(const Module& module, const TensorSource& source, const std::string& place);

}  // namespace sinter
