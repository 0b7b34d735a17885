// A forbidden include; the tests see it reported.
#include "api/sinter.h"
#include "ir/inner.h"
