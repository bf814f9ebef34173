"""The program that unpacks an archive of code where a job runs: regular files and directories only.

`python3 - ARCHIVE FOLDER < PROGRAM` reads the whole archive once and refuses it, before anything is
written, for: names that lead out, links, devices, setuid, a name twice, headers that override what
another says, sizes that are not true, headers without end, and content that is out of proportion.
Then it reads it again and writes, beneath the folder, without following a link. `tar` and Python's
`tarfile` allow some of these, each version others. A text, because it runs in the job's image, of
which only a Python (3.6 or later) is asked for; `job_workspace` puts it into the start script.
"""

from __future__ import annotations

PROGRAM = r'''
import bz2, gzip, lzma, os, stat, sys, zlib

BLOCK = 512
MOST_ENTRIES = 200000
MOST_BYTES = 64 << 30
MOST_TIMES, FROM_BYTES = 200, 256 << 20  # so many times the size of the archive is a bomb
MOST_FILLING = 64 << 20
MOST_EXTRA = 64 << 10  # of a long name, or of records of the kind PAX
HARMLESS = ("mtime", "atime", "ctime", "uid", "gid", "uname", "gname", "comment", "charset")
FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC


class Refused(Exception):
    pass


def opened(path):
    with open(path, "rb") as file:
        magic = file.read(6)
    for start, way in ((b"\x1f\x8b", gzip.open), (b"BZh", bz2.open), (b"\xfd7zXZ\0", lzma.open)):
        if magic.startswith(start):
            return way(path, "rb")
    return open(path, "rb")


def taken(stream, size):
    """Exactly so many bytes."""
    data = stream.read(size)
    while len(data) < size:
        more = stream.read(size - len(data))
        if not more:
            raise Refused("it ends in the middle")
        data += more
    return data


def number(field, what):
    if field[0] & 0x80:
        return int.from_bytes(bytes([field[0] & 0x7F]) + field[1:], "big")
    text = field.strip(b" \0")
    if text.strip(b"01234567"):
        raise Refused("a header has no %s" % what)
    return int(text or b"0", 8)


def checked(header):
    said = number(header[148:156], "checksum")
    if said != sum(header[:148]) + 8 * 32 + sum(header[156:]):
        raise Refused("a header is damaged, or it is no tar archive")
    return header


def text(raw):
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise Refused("a name is no UTF-8: %r" % raw[:100])


def parts_of(name):
    if name.startswith("/"):
        raise Refused("%r is an absolute path" % name[:200])
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise Refused("%r leads out of the folder" % name[:200])
    if "\0" in name or len(name.encode()) > 4000 or any(len(p.encode()) > 255 for p in parts):
        raise Refused("%r is too long, or no name" % name[:200])
    return tuple(parts)


def pax(data):
    """The records as a dict; each says its own length."""
    found = {}
    while data.strip(b"\0"):
        length, blank, _ = data.partition(b" ")
        if not blank or not length.isdigit() or not 5 <= int(length) <= len(data):
            raise Refused("an extended header is damaged")
        record, data = data[len(length) + 1 : int(length)], data[int(length) :]
        key, equals, value = record.partition(b"=")
        if not equals or value[-1:] != b"\n":
            raise Refused("an extended header is damaged")
        found[text(key)] = value[:-1]
    return found


def long_name(kind, data, name):
    """What a header in front of another says its name is."""
    if kind == b"L":
        if name is not None:
            raise Refused("an entry has two names")
        return text(data.rstrip(b"\0"))
    for key, value in pax(data).items():
        if key == "path" and kind == b"x" and name is None:
            name = text(value)
        elif key not in HARMLESS:
            raise Refused("a header overrides the %s of an entry" % key[:50])
    return name


def entries(stream):
    """(parts, is a folder, may be run, size); the stream stands at the content meanwhile."""
    name, extras = None, 0
    while True:
        header = taken(stream, BLOCK)
        if not header.strip(b"\0"):
            if name is not None or taken(stream, BLOCK).strip(b"\0"):
                raise Refused("it has no proper end")
            return
        checked(header)
        kind, size = header[156:157], number(header[124:136], "size")
        if kind in (b"x", b"g", b"L"):
            extras += 1
            if extras > 3 or size > MOST_EXTRA:
                raise Refused("it has headers without end")
            data = taken(stream, size + -size % BLOCK)[:size]
            name = long_name(kind, data, name)
            continue
        if name is None:
            name = text(header[:100].split(b"\0")[0])
            prefix = header[345:500].split(b"\0")[0] if header[257:263] == b"ustar\0" else b""
            name = text(prefix) + "/" + name if prefix else name
        is_folder = kind == b"5" or (kind == b"\0" and name.endswith("/"))
        if not is_folder and kind not in (b"0", b"\0"):
            raise Refused("%r is a link, a device or another thing that is no file" % name[:200])
        mode = number(header[100:108], "mode")
        if not is_folder and mode & (stat.S_ISUID | stat.S_ISGID):
            raise Refused("%r would run as another user" % name[:200])
        if is_folder and size:
            raise Refused("%r is a folder that has content" % name[:200])
        yield parts_of(name), is_folder, bool(mode & stat.S_IXUSR), size
        name, extras = None, 0


def skip(stream, size):
    while size:
        size -= len(taken(stream, min(size, 1 << 20)))


def finish(stream):
    """To the last byte, where a packed stream has its checksum. Tapes are filled with zeros."""
    for _ in range(MOST_FILLING >> 20):
        rest = stream.read(1 << 20)
        if not rest:
            return
        if rest.strip(b"\0"):
            break
    raise Refused("it goes on behind its end")


def survey(path, folder):
    """All entries, if all of them may be."""
    most = min(MOST_BYTES, os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize)
    allowed = max(FROM_BYTES, MOST_TIMES * os.stat(path).st_size)
    found, files, folders, total = [], set(), set(), 0
    with opened(path) as stream:
        for entry in entries(stream):
            parts, is_folder, _, size = entry
            total += size
            if total > allowed or len(found) >= MOST_ENTRIES:
                raise Refused("it is a bomb: its content is out of proportion")
            if total > most:
                raise Refused("its content does not fit on the disk")
            if not is_folder and (not parts or parts in files):
                raise Refused("%r is there twice, or is no name" % "/".join(parts)[:200])
            (folders if is_folder else files).add(parts)
            folders.update(parts[:end] for end in range(len(parts)))
            found.append(entry)
            skip(stream, size + -size % BLOCK)
        finish(stream)
    for parts in files & folders:
        raise Refused("%r is a file and a folder" % "/".join(parts)[:200])
    return found


def entered(root, parts):
    """A descriptor of the folder, made on the way."""
    at = os.dup(root)
    for part in parts:
        try:
            os.mkdir(part, 0o755, dir_fd=at)
        except FileExistsError:
            pass
        try:
            below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | FLAGS, dir_fd=at)
        except OSError:
            raise Refused("%r is here already, and no folder" % "/".join(parts)[:200])
        finally:
            os.close(at)
        at = below
    return at


def write(stream, root, parts, runs, size):
    folder = entered(root, parts[:-1])
    try:
        try:
            os.unlink(parts[-1], dir_fd=folder)
        except FileNotFoundError:
            pass
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | FLAGS
        with open(os.open(parts[-1], flags, 0o755 if runs else 0o644, dir_fd=folder), "wb") as file:
            while size:
                data = taken(stream, min(size, 1 << 20))
                file.write(data)
                size -= len(data)
    finally:
        os.close(folder)


def unpack(path, folder):
    expected = survey(path, folder)
    root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    with opened(path) as stream:
        at = iter(expected)
        for entry in entries(stream):
            if entry != next(at, None):
                raise Refused("it changed while it was read")
            parts, is_folder, runs, size = entry
            if is_folder:
                os.close(entered(root, parts))
            else:
                write(stream, root, parts, runs, size)
                skip(stream, -size % BLOCK)


try:
    unpack(sys.argv[1], sys.argv[2])
except Refused as refused:
    sys.exit("paddlejob: cannot unpack %s: %s" % (sys.argv[1], refused))
except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
    sys.exit("paddlejob: cannot unpack %s: %s" % (sys.argv[1], error))
'''
