/*
The tables of unicode.h, which are generated: see unicode_generate.py.
*/
#include "unicode.h"

#include "unicode_data.h"

const char *pybpe_unicode_version(void) { return UNICODE_VERSION; }

int pybpe_unicode_class(uint32_t code_point) { return code_point <= 0x10FFFF ? unicode_class(code_point) : 0; }
