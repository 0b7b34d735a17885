// A file that its whole room uses does not see the folders above it.
#include "driver/compile/compile.h"
