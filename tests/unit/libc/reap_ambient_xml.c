/* SPDX-License-Identifier: Apache-2.0 */
/* reap_ambient_xml.c: Debian's libxml2, which knows nothing of reaps, inside of one: documents that are never
 * freed are gone with their request. Linked to libreap-malloc. */
#include <libxml/parser.h>
#include <libxml/xpath.h>

#include "hoard.h"
#include "reap.h"
#include "support/expect.h"

enum { REQUESTS = 300 };

static const char text[] = "<?xml version='1.0'?><list>"
                           "<item n='1'>one</item><item n='2'>two &amp; more</item>"
                           "<item n='3'><deep><deeper>three</deeper></deep></item></list>";

/* Parses, searches, changes; frees nothing. */
static void leak(void)
{
    xmlDocPtr document = xmlReadMemory(text, sizeof text - 1, "request.xml", NULL, 0);
    xmlXPathContextPtr context = xmlXPathNewContext(document);
    xmlXPathObjectPtr found = xmlXPathEvalExpression((const xmlChar *)"//item[@n>1]", context);
    EXPECT(found && found->nodesetval && found->nodesetval->nodeNr == 2);
    xmlNodePtr list = xmlDocGetRootElement(document);
    EXPECT(xmlNewChild(list, NULL, (const xmlChar *)"item", (const xmlChar *)"four"));
    xmlChar *printed = NULL;
    int length = 0;
    xmlDocDumpMemory(document, &printed, &length);
    EXPECT(length > 150 && strstr((char *)printed, "four"));
}

static void quiet(void *context, const char *format, ...) { (void)context, (void)format; }

/* The last error is kept with each use, and is given up inside, as reapEnter(3) has it. */
static void fail(void)
{
    xmlSetGenericErrorFunc(NULL, quiet);
    EXPECT(xmlReadMemory("<a><b></a>", 10, "wrong.xml", NULL, XML_PARSE_NOERROR) == NULL);
    EXPECT(xmlGetLastError() != NULL && xmlGetLastError()->code != 0);
}

static size_t live_bytes(void)
{
    struct hoard_stats stats;
    hoard_stats(&stats);
    return stats.live_bytes;
}

int main(void)
{
    size_t after_first = 0, leaked = 0;
    xmlInitParser(); /* what the library keeps for good, outside */
    leak();
    for (int i = 0; i < REQUESTS; i++) {
        void *request;
        struct reap_stats stats;
        reapCreate(&request, NULL);
        reapEnter(&request);
        leak();
        fail();
        xmlResetLastError();
        reapLeave();
        reapStats(&request, &stats);
        leaked += stats.live_bytes;
        reapDestroy(&request);
        if (i == 0) after_first = live_bytes();
    }
    EXPECT(leaked > (size_t)REQUESTS * 5000);
    EXPECT(live_bytes() <= after_first + 4096);
    printf("%zu bytes leaked, %zd of them left\n", leaked, (ssize_t)(live_bytes() - after_first));
    fail();
    leak(); /* outside again, as ever */
    return expect_status();
}
