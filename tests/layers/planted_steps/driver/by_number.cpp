#include "plan/step.h"
bool is_kernel(const Step& step) { return step.run.index() == 0; }
