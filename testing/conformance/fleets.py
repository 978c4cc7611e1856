"""Laws of fleets, for every store that may be opened alone: a store belongs to the first fleet that opened it."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager

import pytest

from ...model.errors import ConfigError


class FleetLaws:
    """Laws of a store's fleet. Each engine's class defines how its store is opened."""

    def opened(self, fleet: str) -> AbstractAsyncContextManager[object]:
        """Opens the one store of this test for a fleet (empty: none), uses it, and closes it at the end. Errors of the
        opening are raised."""
        raise NotImplementedError

    async def test_it_is_of_the_first_fleet_that_opened_it(self) -> None:
        for _ in range(2):
            async with self.opened("shop"):
                pass
            with pytest.raises(ConfigError) as refusal:
                async with self.opened("staging"):
                    pass
            said = str(refusal.value)
            assert "is of fleet shop, and this is fleet staging" in said and "--fleet shop`" in said

    async def test_who_is_of_no_fleet_opens_any_and_takes_over_its_own_later(self) -> None:
        async with self.opened(""):
            pass
        async with self.opened("shop"):  # its first certificates
            pass
        async with self.opened(""):
            pass
        with pytest.raises(ConfigError):
            async with self.opened("staging"):
                pass

    async def test_of_two_that_open_it_at_once_one_has_it(self) -> None:
        async def opens(fleet: str) -> bool:
            try:
                async with self.opened(fleet):
                    return True
            except ConfigError:
                return False

        assert sorted(await asyncio.gather(opens("shop"), opens("staging"))) == [False, True]
