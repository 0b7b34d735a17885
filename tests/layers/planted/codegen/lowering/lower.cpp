#include "codegen/emission/scope.h"
#include "kernels/family.h"
#include "kernels/gemv/emit.h"
