"""Read changed files for some minutes: python tests/helpers/fuzz.py FORMAT MINUTES NEW_FOLDER.

Shows every kind of fault once. The folder keeps a file for it. Children read: they may take 2 GB
more than at their start, and 10 seconds a file. A crash of one is a fault, too.
"""

import faulthandler
import os
import resource
import shutil
import sys
import time
from pathlib import Path
from traceback import extract_tb

import torch
from hostile import EDITS, FORMATS, changed, tried
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

torch.set_num_threads(1)  # a child that is forked beside threads would wait for them forever
kind, minutes, out = sys.argv[1], float(sys.argv[2]), Path(sys.argv[3])
write, read = FORMATS[kind]
real, work, end = out / "real", out / "work/folder", time.monotonic() + 60 * minutes
real.mkdir(parents=True)
write(real)
names = sorted(path.name for path in real.iterdir())
log = (out / "log").open("a", buffering=1)


@settings(max_examples=300, phases=[Phase.generate], deadline=None, database=None,
          suppress_health_check=list(HealthCheck))  # fmt: skip
@given(st.sampled_from(names), EDITS)
def one(name, edits):
    if time.monotonic() > end:
        return
    shutil.rmtree(work.parent, ignore_errors=True)
    work.mkdir(parents=True)
    for part in names if len(names) < 30 else [name]:
        shutil.copy(real / part, work)
    content = changed(name, (real / name).read_bytes(), edits)
    for path in (work / name, out / f"current-{name}"):
        path.write_bytes(content)
    faulthandler.dump_traceback_later(10, exit=True, file=log)
    try:
        result = f"read {tried(read, work, name)}"
    except BaseException as fault:
        last = extract_tb(fault.__traceback__)[-1]
        result = f"FAULT {type(fault).__name__} {Path(last.filename).name}:{last.lineno} {name}"
        shutil.copy(out / f"current-{name}", out / result.replace(" ", "-"))
    faulthandler.cancel_dump_traceback_later()
    others = {path.name for path in work.parent.iterdir()} - {"folder", "folder-out"}
    log.write(f"{result}{f' OUTSIDE {others}' if others else ''}\n")
    (out / f"current-{name}").unlink()


batch = 0
while time.monotonic() < end:
    batch += 1
    if not (child := os.fork()):
        taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + 2**31,) * 2)
        seed(batch)(one)()
        os._exit(0)
    if status := os.waitpid(child, 0)[1]:
        log.write(f"FAULT status {status}\n")
        for path in out.glob("current-*"):
            path.rename(out / f"crash-{batch}-{path.name}")
lines = (out / "log").read_text().splitlines()
faults = sorted({line for line in lines if line.startswith("FAULT") or "OUTSIDE" in line})
print(
    kind, lines.count("read True"), "read", lines.count("read False"), "refused", *faults, sep="\n"
)
