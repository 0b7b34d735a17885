// The rooms above `kernels` see no family's folder.
#include "kernels/gemv/gemv.h"
#include "kernels/library.h"
