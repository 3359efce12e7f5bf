"""Which shard a thing belongs to: CRC-32 of its identity, the same on every machine and version."""

from zlib import crc32


def shard_of_id(number: int, shards: int) -> int:
    """Return the shard, in `[0, shards)`, of a schedule id or a request id."""
    return crc32(number.to_bytes(8, "big", signed=True)) % shards


def shard_of_key(namespace: str, key: str, shards: int) -> int:
    """Return the shard, in `[0, shards)`, of a request key."""
    return crc32(f"{namespace}\x00{key}".encode("utf-8", "surrogatepass")) % shards
