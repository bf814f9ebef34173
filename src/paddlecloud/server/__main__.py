"""`python -m paddlecloud.server`: one process with the API, the pages and the engine."""

from __future__ import annotations

import argparse
import gc
import logging
import os
import sys

from paddlecloud.core.errors import PaddleCloudError
from paddlecloud.pfs.serving.log_limit import limit_logs


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m paddlecloud.server", description=__doc__)
    parser.add_argument("--state", help="state directory (PADDLECLOUD_HOME, ~/.paddlecloud)")
    parser.add_argument("--host", help="address to listen on (PADDLECLOUD_HOST, 127.0.0.1)")
    parser.add_argument("--port", help="port to listen on, 0 = any free (PADDLECLOUD_PORT, 8000)")
    parser.add_argument("--engine", help="local or kubernetes (PADDLECLOUD_ENGINE, local)")
    parser.add_argument("--kubeconfig", help="the cluster (PADDLECLOUD_KUBECONFIG)")
    parser.add_argument("--cluster", help="name of the cluster (PADDLECLOUD_CLUSTER, local)")
    parser.add_argument(
        "--bootstrap-account",
        metavar="NAME",
        help="on an empty state directory make this administrator; its token is left in"
        " secrets/bootstrap-token",
    )
    return parser.parse_args(argv)


def _to_environment(arguments: argparse.Namespace) -> None:
    """Arguments are only another spelling of the variables."""
    for name, variable in (
        ("state", "PADDLECLOUD_HOME"),
        ("host", "PADDLECLOUD_HOST"),
        ("port", "PADDLECLOUD_PORT"),
        ("engine", "PADDLECLOUD_ENGINE"),
        ("cluster", "PADDLECLOUD_CLUSTER"),
        ("kubeconfig", "PADDLECLOUD_KUBECONFIG"),
    ):
        value = getattr(arguments, name)
        if value is not None:
            os.environ[variable] = value


# A thread that comes back from a write to disk waits this long for one that computes. At Python's
# 5 ms the engine and the mirror hold each other up for a tenth of a submit.
_SWITCH_THREADS_S = 0.001


def main(argv: list[str] | None = None) -> int:
    sys.setswitchinterval(_SWITCH_THREADS_S)
    arguments = _arguments(argv)
    _to_environment(arguments)
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    limit_logs()
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    # What strangers send is no event of ours: refusals are answered, not written down.
    logging.getLogger("django.request").setLevel(logging.ERROR)
    logging.getLogger("django.security").setLevel(logging.CRITICAL)
    try:
        return _run(arguments.bootstrap_account)
    except PaddleCloudError as error:
        print(f"error: {error.message}", file=sys.stderr)
        if error.hint:
            print(f"hint:  {error.hint}", file=sys.stderr)
        return error.exit_code


def _run(bootstrap: str | None) -> int:
    gc.disable()  # nothing made while starting is garbage; collecting costs a tenth of it
    from paddlecloud.server import configuration, starting

    chosen = configuration.load()
    lock = starting.hold_state(chosen.storage.state_dir)
    try:
        starting.set_up_django(chosen)
        from paddlecloud.server import file_server, serving
        from paddlecloud.server.process import here
        from paddlecloud.server.services import continuity, packages, registries, telling
        from paddlecloud.server.services.mirroring import Mirror

        sock = serving.listen(chosen)
        starting.begin_process(chosen)
        process = here()
        process.endpoint = serving.endpoint_of(chosen, sock)
        process.files = file_server.make(chosen)
        if bootstrap:
            starting.bootstrap_account(bootstrap)
        # Before engines start: what they tell from now on is news.
        mirrors = [Mirror(engine, continuity.resume(engine)) for engine in process.engines]
        telling.tell_before_start()
        for engine in process.engines:
            engine.start()
        for mirror in mirrors:
            mirror.start()
        process.feeder.start()
        registries.tell_all()
        packages.keep_tidy()
        # Last: it takes a core for a moment, and whoever connects to it meanwhile just waits.
        process.files.start(serving.own_url(chosen, sock), serving.tls_files(chosen))
        gc.freeze()
        gc.enable()
        serving.serve(chosen, process, sock)
        process.files.stop()
        for mirror in mirrors:
            mirror.stop()
        for engine in process.engines:
            engine.close()
    finally:
        lock.close()
    return 0


if __name__ == "__main__":
    code = main()
    logging.shutdown()
    # Daemon threads may be inside an engine that hangs; jobs live on without us.
    os._exit(code)
