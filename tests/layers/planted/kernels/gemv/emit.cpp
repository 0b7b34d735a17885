#include "kernels/row/emit.h"

#include "passes/judge.h"
