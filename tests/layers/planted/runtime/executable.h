// The header that both executors share includes neither; its source does.
#include "runtime/cuda/run.h"
