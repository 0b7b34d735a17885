// A pass that asks the engine behind it.

#include "passes/fusion/fusion.h"
