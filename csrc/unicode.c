/*
The tables of unicode.h, which are generated: see unicode_generate.py.
*/
#include "unicode.h"

#include "unicode_data.h"

const char *pybpe_unicode_version(void) { return UNICODE_VERSION; }
