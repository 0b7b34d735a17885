#include "kernels/family.h"
#include "plan/program.h"
