// A forbidden include; the tests see it reported.
#include "driver/sinter.h"
#include "ir/inner.h"
