import hashlib
import io

import pytest

from haft.contracts import ToolFailed
from haft.files import digest_of, digest_of_file


def test_bytes_and_file_have_the_same_digest():
    content = b"hello\r\n\0" * 500_000
    assert digest_of(content) == digest_of_file(io.BytesIO(content)) == hashlib.sha256(content).hexdigest()


def test_a_long_file_can_be_stopped_in_the_middle():
    with pytest.raises(ToolFailed, match="stopped"):
        digest_of_file(io.BytesIO(b"x" * 3_000_000), lambda: True)
