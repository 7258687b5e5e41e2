"""Helpers that are started before anybody needs them."""

import asyncio
import sys

import pytest

from haft.processes import Helper, start_spare
from haft.processes import helper as helpers

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="helpers run on Linux only")


def process_of_spare():
    start_spare("plain")
    return helpers._spares["plain"][0]


async def begun():
    """A helper that has answered, and its process."""
    helper = Helper("plain")
    await helper.hello()
    return helper, helper._process.pid


def test_the_next_helper_is_the_one_that_runs_already():
    async def body():
        spare = process_of_spare()
        start_spare("plain")
        assert process_of_spare() is spare, "one is enough"
        first, pid = await begun()
        assert pid == spare.pid
        second, other = await begun()
        assert other != pid, "it is taken only once"
        first.close()
        second.close()

    asyncio.run(body())


def test_a_spare_that_has_died_is_replaced():
    async def body():
        spare = process_of_spare()
        spare.kill()
        spare.wait()
        helper, pid = await begun()
        assert pid != spare.pid
        helper.close()

    asyncio.run(body())


def test_a_spare_that_nobody_takes_ends_with_its_host():
    start_spare("zygote")
    process, end = helpers._spares.pop("zygote")
    end.close()
    assert process.wait(20) == 0
