#include "plan/step.h"
const KernelStep* kernel_of(const Step& step) { return std::get_if<KernelStep>(&step.run); }
