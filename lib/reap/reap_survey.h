/* SPDX-License-Identifier: Apache-2.0 */
/* reap_survey.h: walks over the tree of reaps, while other threads create and destroy some: reapReport,
 * reapSurvey, and the list of reaps that were never destroyed. */
#ifndef REAP_SURVEY_H
#define REAP_SURVEY_H

/* If the options say so, arranges that the program's exit lists each reap that was never destroyed. */
void reap_survey_start(void);

#endif
