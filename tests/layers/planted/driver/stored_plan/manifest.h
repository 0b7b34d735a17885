// The code that opens a plan does not know how one is written.
#include "driver/compile/compile.h"
#include "driver/plan_folder/write.h"
