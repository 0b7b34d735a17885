#include "driver/host_kernels.h"

#include <deque>

#include "plan/plan_file.h"
#include "runtime/evaluate/evaluate.h"

namespace sinter {
namespace {

/// One kernel of a program, for as long as the process lives: recorded graphs may hold it.
struct HostKernel : FakeKernel {
  std::shared_ptr<const Program> program;
  const Kernel* kernel = nullptr;
};

void evaluate_kernel(const FakeKernel& fake, unsigned, const uint64_t* parameters) {
  const auto& self = static_cast<const HostKernel&>(fake);
  const Graph& group = self.kernel->group;
  const size_t inputs = group.inputs.size(), outputs = group.outputs.size();
  std::vector<int64_t> values;  // those that the kernel does not read must be valid
  for (const Symbol& symbol : self.program->symbols)
    values.push_back(symbol.at_most ? symbol.low : symbol.high);
  for (size_t i = 0; i < self.kernel->symbols.size(); ++i)
    values[self.kernel->symbols[i].index] = static_cast<int64_t>(parameters[inputs + outputs + i]);
  std::vector<HostTensor> read(inputs);
  std::vector<const HostTensor*> operands;
  for (size_t i = 0; i < inputs; ++i) {
    const TensorType& type = group[group.inputs[i]].type;
    auto tensor = make_tensor(type.dtype, concrete_dims(type, values));
    SINTER_CHECK(tensor.has_value(), "{}", tensor.error().message());
    read[i] = std::move(*tensor);
    std::memcpy(read[i].bytes.data(), reinterpret_cast<const void*>(parameters[i]),
                read[i].bytes.size());
    operands.push_back(&read[i]);
  }
  const auto results = evaluate(group, self.program->symbols, values, operands);
  SINTER_CHECK(results.has_value(), "{}", results.error().message());
  for (size_t i = 0; i < outputs; ++i)
    std::memcpy(reinterpret_cast<void*>(parameters[inputs + i]), (*results)[i].bytes.data(),
                (*results)[i].bytes.size());
}

}  // namespace

MachineCodeByText host_machine_code(const std::shared_ptr<const Program>& program) {
  static std::deque<HostKernel> host_kernels;
  MachineCodeByText code;
  for (const Kernel& kernel : program->kernels) {
    HostKernel& host = host_kernels.emplace_back();
    host.parameters =
        kernel.group.inputs.size() + kernel.group.outputs.size() + kernel.symbols.size();
    host.run = evaluate_kernel;
    host.program = program;
    host.kernel = &kernel;
    code[text_hash(kernel)] = host.code();
  }
  return code;
}

Result<std::shared_ptr<const Executable>> load_on_fake(std::shared_ptr<const Program> program,
                                                       const TensorSource* source) {
  SINTER_LET(device, CudaDevice::open(0));
  SINTER_LET(weights, CudaWeights::load(device, *program, source));
  const MachineCodeByText code = host_machine_code(program);
  SINTER_LET(model, CudaExecutable::load(std::move(program), std::move(device), nullptr,
                                         std::move(weights), {}, KernelCache(std::string()), code));
  return std::move(model);
}

}  // namespace sinter
