# SPDX-License-Identifier: Apache-2.0
"""The report: what report.py measures, keeps, sums up, draws and writes.

    plan        which cases, of the suites of run.py and of its own (extra)
    rounds      runs them until they have settled or the time is up; machine says how busy it was meanwhile
    results     a small file for each round of a case, so that a run can end at any moment
    ratios      what rounds say: a figure, its spread, who is first
    papers      the papers' figures; charts says what stands beside what, and reasons why ours is not first
    draw, page  pictures, the page, and the table in the terminal
"""
