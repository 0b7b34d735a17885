// The program sees the driver alone.
#include "driver/bench/bench.h"
#include "passes/fusion/judge.h"
