"""Make src/luciole/wire/luciole_pb2.py and its types from luciole.proto.

usage: .venv/bin/python scripts/generate_wire.py [FOLDER]   (src by default)

The module is not the compiler's own: that one refuses every protobuf runtime that is older than the compiler or two
major versions newer, and an executor has to live beside what else its user has installed. This one holds the
same descriptor and builds the classes with protobuf's public interface.
"""

import sys
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parent.parent
PROTO = "luciole/wire/luciole.proto"
WIDTH = 60

TEMPLATE = '''"""Generated from {proto} by scripts/generate_wire.py: do not edit."""

from google.protobuf import descriptor_pool, message_factory

DESCRIPTOR = descriptor_pool.DescriptorPool().AddSerializedFile(
{descriptor}
)

{classes}
'''


def generate(folder: Path) -> None:
    """Write the generated files below a folder, where imports expect them.

    Args:
        folder: a source folder; `luciole/wire` inside it exists.

    Raises:
        SystemExit: the compiler refused the file; it has said why.
    """
    from google.protobuf.descriptor_pb2 import FileDescriptorSet  # noqa: PLC0415 - only this function needs it
    from grpc_tools import protoc  # noqa: PLC0415 - same, and it takes a while to load

    with TemporaryDirectory() as scratch:
        found = Path(scratch) / "descriptors"
        arguments = ["protoc", f"-I{ROOT / 'src'}", f"-I{files('grpc_tools') / '_proto'}"]
        if protoc.main([*arguments, f"--descriptor_set_out={found}", f"--pyi_out={folder}", PROTO]):
            raise SystemExit(f"{PROTO}: the compiler refused it")
        (descriptor,) = FileDescriptorSet.FromString(found.read_bytes()).file
    content = descriptor.SerializeToString(deterministic=True)
    lines = [f"    {content[at : at + WIDTH]!r}" for at in range(0, len(content), WIDTH)]
    classes = [
        f'{kind.name} = message_factory.GetMessageClass(DESCRIPTOR.message_types_by_name["{kind.name}"])'
        for kind in descriptor.message_type
    ]
    text = TEMPLATE.format(proto=PROTO, descriptor="\n".join(lines), classes="\n".join(classes))
    (folder / PROTO).with_name("luciole_pb2.py").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    generate(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "src")
