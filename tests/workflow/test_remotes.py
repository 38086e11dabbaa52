"""Sharing results over SSH, on a real server of this machine."""

import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest
from project_copy import ProjectCopy, wait_until
from shared_results import bare_clone, both_quiet

pytestmark = pytest.mark.slow

SSHD = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def share(source: ProjectCopy, name: str, **settings: str) -> None:
    """Push to a remote and take everything over in a clone; both engines are quiet there."""
    source.call("dvc", "remote", "modify", "shared", "url", settings.pop("url"))
    for key, value in settings.items():
        source.call("dvc", "remote", "modify", "--local", "shared", key, value)
    assert "files pushed" in source.call("dvc", "push")
    source.commit()
    copy = bare_clone(source, name)
    if settings:
        shutil.copy(source.folder / ".dvc" / "config.local", copy.folder / ".dvc")
    copy.call("dvc", "pull")
    both_quiet(copy)


@pytest.mark.skipif(SSHD is None, reason="no sshd here: install openssh-server to test SSH")
def test_push_and_pull_over_ssh(clone, tmp_path):
    for key in ("host", "user"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / key)]
        subprocess.run(command, check=True)
    shutil.copy(tmp_path / "user.pub", tmp_path / "authorized_keys")
    port = free_port()
    options = {
        "Port": port,
        "ListenAddress": "127.0.0.1",
        "HostKey": tmp_path / "host",
        "AuthorizedKeysFile": tmp_path / "authorized_keys",
        "StrictModes": "no",
        "PidFile": "none",
        "Subsystem": "sftp internal-sftp",
    }
    flags = [flag for key, value in options.items() for flag in ("-o", f"{key}={value}")]
    Path("/run/sshd").mkdir(exist_ok=True)  # where sshd drops its rights
    server = subprocess.Popen([SSHD, "-D", "-e", "-f", "/dev/null", *flags])
    try:
        wait_until(lambda: answers(port), 30)
        user = os.environ.get("USER") or "root"
        url = f"ssh://{user}@127.0.0.1:{port}{tmp_path}/remote"
        share(clone, "over-ssh", url=url, keyfile=str(tmp_path / "user"))
    finally:
        server.kill()
        server.wait()
