/* SPDX-License-Identifier: Apache-2.0 */
#include "page.h"

#include <string.h>

/* The bytes of the page, and a zero: made by the Makefile. */
static const char page[] = {
#include "page_bytes.h"
    0};

static const char *first_of(const char *at)
{
    const char *script = strstr(at, "<script>"), *style = strstr(at, "<style>");
    return !script || (style && style < script) ? style : script;
}

void page_write(struct text *text, const char *nonce)
{
    const char *at = page, *element;
    while ((element = first_of(at))) {
        const char *end = strchr(element, '>');
        text_add(text, at, (size_t)(end - at));
        text_printf(text, " nonce=\"%s\"", nonce);
        at = end;
    }
    text_puts(text, at);
}
