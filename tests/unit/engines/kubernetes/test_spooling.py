"""A log filled over connections that break anywhere: every byte once."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.engines.kubernetes.spooling import Spool


def a_spool(folder: Path, cap_bytes: int = 2**30) -> Spool:
    return Spool(folder, cap_bytes, 4096)


def text_of(spool: Spool) -> bytes:
    return spool.read(0, 2**20).data


class Kubelet:
    """What `GET log?timestamps=true&sinceTime=…` answers."""

    def __init__(self, lines: list[tuple[int, bytes]], tail: bytes = b"") -> None:
        self.rows = [(_time(at), line + b"\n") for at, line in lines]
        if tail:
            self.rows.append((_time(lines[-1][0] if lines else 0), tail))

    def answer(self, since: str) -> bytes:
        return b"".join(
            stamp.encode() + b" " + line for stamp, line in self.rows if not since or stamp >= since
        )

    @property
    def text(self) -> bytes:
        return b"".join(line for _, line in self.rows)


def _time(at: int) -> str:
    return f"2026-11-16T18:00:{at // 10**9:02d}.{at % 10**9:09d}Z"


_lines = st.lists(
    st.tuples(st.integers(0, 3), st.binary(max_size=12).map(lambda b: b.replace(b"\n", b""))),
    max_size=12,
).map(lambda rows: [(sum(at for at, _ in rows[: n + 1]), line) for n, (_, line) in enumerate(rows)])


@given(_lines, st.sampled_from([b"", b"no end"]), st.lists(st.integers(0, 400), max_size=5))
def test_holds_every_byte_once_however_connections_break(tmp_path_factory, lines, tail, breaks):
    kubelet, folder = Kubelet(lines, tail), tmp_path_factory.mktemp("spool")
    spool = a_spool(folder)
    for number, place in enumerate(breaks):
        answer = kubelet.answer(spool.begin())
        cut = min(place, len(answer))
        spool.take(answer[: cut // 2])
        spool.take(answer[cut // 2 : cut])
        if number % 2:
            spool = a_spool(folder)  # another process goes on
    spool.take(kubelet.answer(spool.begin()))
    spool.finish()
    assert text_of(spool) == kubelet.text
    assert a_spool(folder).is_done


def test_cuts_off_what_a_crash_left_behind_the_mark(tmp_path):
    spool, kubelet = a_spool(tmp_path), Kubelet([(1, b"one"), (2, b"two")])
    spool.take(kubelet.answer(spool.begin())[:-10])
    with (tmp_path / "log").open("ab") as file:
        file.write(b"half a li")
    again = a_spool(tmp_path)
    assert text_of(again) == b"one\n"
    again.take(kubelet.answer(again.begin()))
    assert text_of(again) == b"one\ntwo\n"


def test_takes_an_unfinished_line_only_when_the_program_has_ended(tmp_path):
    spool, kubelet = a_spool(tmp_path), Kubelet([], b"0123456789")
    spool.take(kubelet.answer(spool.begin()))
    assert spool.size == 0
    spool.finish()
    assert (text_of(spool), spool.read(0, 100).ended) == (b"0123456789", True)


def test_wakes_who_waits_for_more(tmp_path):
    spool, kubelet = a_spool(tmp_path), Kubelet([(1, b"one")])
    spool.take(kubelet.answer(spool.begin()))
    spool.wait(0, 60.0)  # there is more than that already
    spool.finish()
    spool.wait(4, 60.0)  # there will be no more


def test_drops_the_middle_of_a_log_that_is_too_long(tmp_path):
    spool = a_spool(tmp_path, cap_bytes=40_000)
    kubelet = Kubelet([(n, b"x" * 99) for n in range(1000)])
    spool.take(kubelet.answer(spool.begin()))
    assert spool.size == 100_000
    first = spool.read(0, 2**20)
    rest = spool.read(first.next, 2**20)
    assert first.data.endswith(b"x\n")
    assert rest.dropped_bytes > 50_000
    assert len(first.data) + rest.dropped_bytes + len(rest.data) == 100_000
