/* reap_stats.h: what is said at exit of reaps that were never destroyed.   (floor 7) */
#ifndef REAP_STATS_H
#define REAP_STATS_H

/* Has each of them named when the program exits, if the options say so. */
void reap_stats_start(void);

#endif
