"""Python with its libraries loaded: commands of copies are forked from it, to save their imports.

To start `python`, `snakemake` or `dvc` takes one to three seconds, most of them imports, and a
workflow starts them by the dozen. A server here imports the libraries, none of them ours, once.
In `clients()` lie programs of those three names: each hands its words, variables, folder and open
files to the server, in whose fork the command runs as in a process of its own. The command is
killed when its client is, and the client ends as it does. Variables that Python reads as it starts,
such as PYTHONHASHSEED, are those of the server; kills from a test would hit the client. So such
commands are started cold, or by a server of their own: see `ProjectCopy`.
"""

import atexit
import contextlib
import ctypes
import gc
import importlib
import json
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NoReturn

LIBRARIES = """
docutils.parsers.rst jinja2 matplotlib.backends.backend_agg matplotlib.backends.backend_pdf
matplotlib.backends.backend_svg matplotlib.pyplot networkx numpy pandas pydantic requests
ruamel.yaml sacrebleu safetensors.torch scipy.stats subword_nmt.apply_bpe subword_nmt.learn_bpe
torch torch._dynamo tqdm yaml
snakemake.api snakemake.assets snakemake.cli snakemake.report snakemake.workflow
dvc.cli.parser dvc.commands.repro dvc.repo dvc.repo.push dvc.repo.reproduce dvc.repo.status
dvc.stage.run dvc_data.hashfile.build scmrepo.git
"""
ENTRIES = {"snakemake": "snakemake.cli", "dvc": "dvc.cli"}
PROGRAMS = {"python", *ENTRIES}

CLIENT = """#!{python} -IS
import array, json, os, signal, socket, sys
flag = "-" if len(sys.argv) == 1 else sys.argv[1]
if sys.argv[0].endswith("/python") and flag[0] == "-" and flag != "-m":
    os.execv({python!r}, [{python!r}, *sys.argv[1:]])
call = json.dumps([sys.argv, dict(os.environ), os.getcwd()]).encode()
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
files = array.array("i", [0, 1, 2])
server.sendmsg([len(call).to_bytes(4, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)])
server.sendall(call)
code = int(server.makefile().readline() or 1)
if code < 0:
    os.kill(os.getpid(), -code)
os._exit(code)
"""


@cache
def clients(**variables: str) -> Path:
    """A folder with `python`, `snakemake` and `dvc`, whose server ends with this process.

    It is started with these variables, and without the PYTHONPATH of this process.
    """
    folder = Path(tempfile.mkdtemp())  # a short path: sockets allow about a hundred characters
    address = str(folder / "socket")
    for name in PROGRAMS:
        (folder / name).write_text(CLIENT.format(python=sys.executable, address=address))
        (folder / name).chmod(0o755)
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, __file__, address]
    server = subprocess.Popen(command, env=bare | variables, stdout=subprocess.PIPE, text=True)
    atexit.register(shutil.rmtree, folder)
    atexit.register(server.kill)
    assert server.stdout.readline() == "ready\n"
    return folder


def serve(address: str) -> list:
    """Answer clients for ever; return the call in each fork that is to carry one out."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(address)
    listening.listen(64)
    print("ready", flush=True)
    while True:
        connection = listening.accept()[0]
        if os.fork() == 0:
            listening.close()
            return attend(connection)
        connection.close()
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def attend(connection: socket.socket) -> list:
    """Fork the command that a client asks for; return the call in the fork, which has its files.

    Tell the client how the command ended, or kill the command if the client is gone.
    """
    die_with_parent()
    length, files, _, _ = socket.recv_fds(connection, 4, 3)
    with connection.makefile("rb") as stream:
        text = stream.read(int.from_bytes(length, "big"))
    command = os.fork() if text else os._exit(0)  # a client that was killed before it could ask
    for number, file in enumerate(files):
        if command == 0:
            os.dup2(file, number)
        os.close(file)
    if command == 0:
        connection.close()
        return json.loads(text)
    ended = os.pidfd_open(command)
    if connection in select.select([connection, ended], [], [])[0]:
        os.kill(command, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(command, 0)[1])
    with contextlib.suppress(OSError):
        connection.sendall(f"{code}\n".encode())
    os._exit(0)


def leave(command: Callable[[], None]) -> NoReturn:
    """Run the command and end as Python does, but without taking apart what is loaded.

    That would copy most of the memory shared with the server, and took 0.4 seconds.
    """
    code = 0
    try:
        command()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int | None) else 1
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # closed, or nobody reads it
            stream.flush()
    os._exit((code or 0) & 0xFF)


def carry_out(words: list[str], variables: dict[str, str], folder: str) -> None:
    """Be the command: its module path, words and variables are as in a process of its own."""
    die_with_parent()
    if "HEADCOUNT_JOB" in variables:  # a job ends with its parent, which waits for it here
        variables["HEADCOUNT_JOB"] = str(os.getppid())
    os.environ.clear()
    os.environ.update(variables)
    sys.dont_write_bytecode = bool(variables.get("PYTHONDONTWRITEBYTECODE"))
    os.chdir(folder)
    command, *sys.argv = words
    sys.executable = str(Path(command).with_name("python"))
    sys.path[1:1] = filter(None, variables.get("PYTHONPATH", "").split(os.pathsep))
    if (name := Path(command).name) in ENTRIES:
        del sys.path[0]
        sys.argv = words
        sys.exit(importlib.import_module(ENTRIES[name]).main())
    if sys.argv[0] == "-m":
        del sys.argv[0]
        sys.path[0] = folder
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
        runpy.run_path(sys.argv[0], run_name="__main__")


def die_with_parent() -> None:
    """Be killed when the parent process ends; Linux's alone."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # 1 is PR_SET_PDEATHSIG


if __name__ == "__main__":
    die_with_parent()
    for library in LIBRARIES.split():
        importlib.import_module(library)
    gc.freeze()  # so that forks share these modules for longer
    call = serve(sys.argv[1])
    leave(lambda: carry_out(*call))
