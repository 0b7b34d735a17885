// What both share sees neither; its source does.
#include "runtime/cuda/run.h"
