// Of kernels the rooms above see no family.
#include "kernels/gemv/gemv.h"
#include "kernels/library.h"
