"""Which function answers which row of the table."""

from __future__ import annotations

from collections.abc import Mapping

from paddlecloud.pfs.serving import (
    changing,
    fetching,
    looking,
    old_protocol,
    record_streams,
    simple_protocol,
    uploading,
)
from paddlecloud.pfs.serving.service import Handler

HANDLERS: Mapping[str, Handler] = {
    "entries": looking.entries,
    "entry": looking.entry,
    "usage": looking.usage,
    "content": looking.content,
    "compare": looking.compare,
    "make_directories": changing.make_directories,
    "remove": changing.remove,
    "move": changing.move,
    "copy": changing.copy,
    "put_snapshot": changing.put_snapshot,
    "snapshot": changing.snapshot,
    "begin_upload": uploading.begin_upload,
    "uploads": uploading.uploads,
    "put_leaves": uploading.put_leaves,
    "take_leaves": uploading.take_leaves,
    "abandon_upload": uploading.abandon_upload,
    "reuse_leaves": uploading.reuse_leaves,
    "commit_upload": uploading.commit_upload,
    "batch": record_streams.batch,
    "blobs": record_streams.blobs,
    "fetch": fetching.fetch,
    "old_look": old_protocol.look,
    "old_change": old_protocol.change,
    "old_chunk_meta": old_protocol.chunk_meta,
    "old_get_chunk": old_protocol.get_chunk,
    "old_post_chunk": old_protocol.post_chunk,
    "simple_put": simple_protocol.put,
    "simple_get": simple_protocol.get,
    "simple_list": simple_protocol.names,
}
