// A device of the C interface, and tensors in the caller's memory.
#pragma once

#include <mutex>

#include "api/border.h"
#include "driver/backend.h"
#include "driver/calls/tensor_view.h"

struct sinter_device {
  std::shared_ptr<sinter::Device> device;
  std::string name, target;
};

struct sinter_weights {
  std::map<std::string, sinter::TensorView> host, device;
};

namespace sinter {

/// A tensor of the caller's from the parameters of a function. `name` is for errors.
Result<TensorView> view_of(const char* name, const char* dtype, size_t rank, const int64_t* dims,
                           const int64_t* strides, void* data);

/// The backend that runs whole models on the device.
Result<std::shared_ptr<Backend>> backend_on(const sinter_device& device,
                                            const WeightProgress& progress = {});

}  // namespace sinter
