"""
A run with a progress bar
=========================

``progress=True`` shows a bar below the cell of a notebook: finished tasks, tasks a minute, and the time
left. On a terminal it is a bar too, and in a log a line a minute. A function receives the numbers
instead, as in the second cell.

The figure shows the finished tasks, and the estimate of the time at which the run ends, against time.
"""

import time

import matplotlib.pyplot as plt

import solvable

settings = {"preset": None, "dimension": 40, "sample_ratio": [0.2, 0.3, 0.5], "seeds": 6}

# %%
# In a notebook this cell shows the bar.

found = solvable.run("quadratic-network", progress=True, workers=1, **settings)
print(found)

# %%
# A function of your own is called at the start and after each task. The seconds left are None before the
# first task has ended.

begun, reports = time.perf_counter(), []


def report(done, total, seconds_left):
    reports.append((time.perf_counter() - begun, done, total, seconds_left))


solvable.run("quadratic-network", progress=report, workers=1, **settings)

fig, axes = plt.subplots(figsize=(6, 3.6), constrained_layout=True)
axes.step([row[0] for row in reports], [row[1] for row in reports], where="post")
axes.set(xlabel="seconds since the start", ylabel="finished tasks", ylim=(0, reports[0][2]))
ends = axes.twinx()
known = [row for row in reports if row[3] is not None]
ends.plot([row[0] for row in known], [row[0] + row[3] for row in known], "C1--")
ends.set_ylabel("estimated end, in seconds", color="C1")
ends.set_ylim(bottom=0)
plt.show()
