/* SPDX-License-Identifier: Apache-2.0 */
/* analyse.c: reap-analyse, which reads a trace of libreap-trace. */
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "show.h"
#include "symbols.h"
#include "tools/common/elf_names.h"
#include "uses.h"

static const char usage[] =
    "usage: reap-analyse [--json | --page | --early] [--places N] [--uses FILE] [--output FILE] TRACE\n"
    "  --json          numbers for programs\n"
    "  --page          pictures: one file of HTML\n"
    "  --early         for bench/replay: when the objects of these places are used last\n"
    "  --places N      the N stacks with most bytes, or drag; 10\n"
    "  --uses FILE     last uses: what libreap-uses or valgrind --tool=lackey says of the same run\n"
    "  --output FILE   to a file\n"
    "REAP_TRACE=FILE LD_PRELOAD=libreap-trace.so PROGRAM records a trace: see reap-analyse(1).\n";

struct wanted {
    void (*show)(const struct shown *shown, FILE *out);
    const char *uses, *output;
    uint32_t places;
};

static bool parse(int argc, char **argv, struct wanted *wanted)
{
    static const struct option options[] = {
        {"json", 0, NULL, 'j'}, {"page", 0, NULL, 'p'},   {"early", 0, NULL, 'e'}, {"places", 1, NULL, 'n'},
        {"uses", 1, NULL, 'u'}, {"output", 1, NULL, 'o'}, {"help", 0, NULL, 'h'},  {0}};
    char *end = NULL;
    for (int option; (option = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
        switch (option) {
        case 'j': wanted->show = show_json; break;
        case 'p': wanted->show = show_page; break;
        case 'e': wanted->show = show_early; break;
        case 'u': wanted->uses = optarg; break;
        case 'o': wanted->output = optarg; break;
        case 'n':
            wanted->places = (uint32_t)strtoul(optarg, &end, 10);
            if (*end != '\0' || end == optarg || wanted->places > 10000) return false;
            break;
        case 'h': fputs(usage, stdout); exit(EXIT_SUCCESS);
        default: return false;
        }
    }
    return optind + 1 == argc && (wanted->show != show_early || wanted->uses);
}

/* A page or numbers that are not whole are an error. */
static bool show(const struct wanted *wanted, const struct shown *shown)
{
    FILE *out = wanted->output ? fopen(wanted->output, "w") : stdout;
    if (out) wanted->show(shown, out);
    bool is_whole = out && fflush(out) == 0 && !ferror(out);
    if (!is_whole)
        fprintf(stderr, "reap-analyse: %s: %m\n", wanted->output ? wanted->output : "standard output");
    if (out && out != stdout) is_whole = fclose(out) == 0 && is_whole;
    return is_whole;
}

/* False: the trace and the uses are not of one run. */
static bool are_of_one_run(const struct figures *figures, const char *path, const char *uses)
{
    uint64_t unseen = figures->n_unseen, seen = figures->n_events;
    if (seen == 0 && unseen == 0) fprintf(stderr, "%s: has no events\n", path);
    if (unseen == 0) return true;
    if (seen == 0)
        fprintf(stderr,
                "reap-analyse: %s and %s are of different runs: no event of the trace is among the uses\n",
                path, uses);
    else
        fprintf(stderr, "%s: ends before %" PRIu64 " of the %" PRIu64 " events of %s, which are left out\n",
                uses, unseen, seen + unseen, path);
    return seen > 0;
}

int main(int argc, char **argv)
{
    static struct figures figures;
    struct wanted wanted = {.show = show_text, .places = 10};
    if (!parse(argc, argv, &wanted)) {
        fputs(usage, stderr);
        return 2;
    }
    const char *path = argv[optind];
    struct uses *uses = wanted.uses ? uses_read(wanted.uses) : NULL;
    if (wanted.uses && !uses) return EXIT_FAILURE;
    struct reader *reader = reader_open(path, stderr);
    if (!reader) return EXIT_FAILURE;
    bool done = figures_read(&figures, reader, uses);
    done = done && are_of_one_run(&figures, path, wanted.uses);
    struct shown shown = {&figures, reader, path, wanted.places};
    done = done && show(&wanted, &shown);
    figures_free(&figures);
    reader_close(reader);
    uses_free(uses);
    elf_names_forget();
    return done ? EXIT_SUCCESS : EXIT_FAILURE;
}
