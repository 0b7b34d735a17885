#include "kernels/row/emit.h"

#include "passes/fusion/judge.h"
