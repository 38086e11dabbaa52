"""A SLURM cluster of this machine alone: two nodes, for as long as a test needs it; root only."""

import os
import re
import shutil
import signal
import socket
import subprocess
from pathlib import Path

from project_copy import wait_until

SETTINGS = Path("/etc/slurm")
"""Where a job's own srun looks: variables such as SLURM_CONF do not reach it."""

CONF = """\
ClusterName=headcount
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={base}/munge/socket
CredType=cred/munge
StateSaveLocation={base}/state
SlurmdSpoolDir={base}/spool.%n
SlurmctldPidFile={base}/slurmctld.pid
SlurmdPidFile={base}/slurmd.%n.pid
SlurmctldLogFile={base}/log/slurmctld.log
SlurmdLogFile={base}/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SlurmdParameters=config_overrides
ReturnToService=2
SlurmdTimeout=20
KillWait=2
GresTypes=gpu
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""

NODES = ("n1", "n2")
CPUS = GPUS = 2
"""Of each node. SLURM gives GPUs out, and jobs run on the processor."""


def available() -> bool:
    """Whether a cluster can be started here: the daemons, we are root, control groups are of v1."""
    daemons = all(map(shutil.which, ("munged", "slurmctld", "slurmd")))
    return daemons and os.geteuid() == 0 and Path("/sys/fs/cgroup/freezer").is_dir()


class SlurmCluster:
    """Daemons of a cluster whose files lie in one folder."""

    def __init__(self, base: Path):
        self.base = base
        self.links: list[Path] = []

    def __enter__(self) -> "SlurmCluster":
        try:
            self._start()
        except BaseException:  # no daemon stays behind, whatever went wrong
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        subprocess.run(["scancel", "--user", "root"], check=False)
        for file in [*self.base.glob("slurm*.pid"), *self.base.glob("munge/pid")]:
            pid = int(file.read_text())
            os.kill(pid, signal.SIGTERM)
            wait_until(lambda pid=pid: not Path(f"/proc/{pid}").exists(), 30)
        for link in self.links:
            link.unlink()

    def state(self, job: str) -> str:
        """State of a job in one word, such as RUNNING or TIMEOUT; empty when it is forgotten."""
        found = re.search(r"JobState=(\w+)", told("scontrol", "show", "job", job))
        return found[1] if found else ""

    def queue(self) -> list[str]:
        """Ids of the jobs that wait or run."""
        return told("squeue", "-h", "-o", "%i").split()

    def _start(self) -> None:
        for name in ("state", "log", "munge", *(f"spool.{node}" for node in NODES)):
            (self.base / name).mkdir(parents=True)
        self._write_settings()
        self._start_munge()
        run("slurmctld", "-c")
        for node in NODES:
            run("slurmd", "-N", node)
        wait_until(lambda: told("sinfo", "-h", "-t", "idle", "-o", "%D") == str(len(NODES)), 30)

    def _write_settings(self) -> None:
        host, port = socket.gethostname(), _free_ports(len(NODES) + 1)
        megabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20 - 500
        lines = [CONF.format(host=host, port=port, base=self.base)]
        for number, node in enumerate(NODES, start=1):
            lines.append(
                f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port + number} "
                f"CPUs={CPUS} RealMemory={megabytes} Gres=gpu:{GPUS} State=UNKNOWN\n"
            )
        texts = {"slurm.conf": "".join(lines), "cgroup.conf": "CgroupPlugin=cgroup/v1\n"}
        devices = [self.base / f"gpu{number}" for number in range(GPUS)]
        for device in devices:
            device.touch()
        names = ",".join(map(str, devices))
        texts["gres.conf"] = f"Name=gpu File={names}\n"
        for name, text in texts.items():
            (self.base / name).write_text(text)
            link = SETTINGS / name
            assert not link.exists() and not link.is_symlink(), f"{link}: another cluster's"
            SETTINGS.mkdir(exist_ok=True)
            link.symlink_to(self.base / name)
            self.links.append(link)

    def _start_munge(self) -> None:
        folder = self.base / "munge"
        folder.chmod(0o700)
        (folder / "key").write_bytes(os.urandom(128))
        (folder / "key").chmod(0o400)
        named = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log"}
        named["seed-file"] = "seed"
        flags = [f"--{flag}={folder / name}" for flag, name in named.items()]
        run("munged", "--force", "--num-threads=1", *flags)


def _free_ports(count: int) -> int:
    """The first of so many ports in a row that nothing listens on."""
    for first in range(26817, 60000, count):
        try:
            for port in range(first, first + count):
                with socket.socket() as trial:
                    trial.bind(("127.0.0.1", port))
            return first
        except OSError:
            continue
    raise AssertionError("no free ports in a row")


def run(*command: str) -> None:
    """Run a command that must end well."""
    subprocess.run(command, check=True, timeout=60, stdout=subprocess.DEVNULL)


def told(*command: str) -> str:
    """What a command prints, whatever its exit code."""
    found = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return found.stdout.strip()
