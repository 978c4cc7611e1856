"""`quotas.yaml`: the limits of functions, applied when the gateway starts.

    functions:
      send_email: {concurrency: 50, rate: 100, burst: 200, weight: 2}

A function named here gets exactly these limits at each start; the others keep what `tailrace quota set` gave them.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ..model.limits import HIGHEST_LIMIT, Quota

Limit = Annotated[float, Field(ge=0, le=HIGHEST_LIMIT, allow_inf_nan=False)]


class FunctionQuota(BaseModel):
    """Limits of one function; what is left out is not limited.

    concurrency  runs at once
    rate         starts per second; burst: how many of them at once after a quiet time (default: the rate, at least 1)
    weight       its share when functions compete (default 1)
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    concurrency: int = Field(default=0, ge=0, le=int(HIGHEST_LIMIT))
    rate: Limit = 0.0
    burst: Limit = 0.0
    weight: Limit = 0.0

    @model_validator(mode="after")
    def _fits_together(self) -> FunctionQuota:
        if fault := self.quota("").fault():
            raise ValueError(fault)
        return self

    def quota(self, function: str) -> Quota:
        """These limits, of this function."""
        return Quota(function, self.concurrency, self.rate, self.burst, self.weight)


class QuotasConfig(BaseModel):
    """Limits of each function, set when the gateway starts; a function that is not named is not limited."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    functions: dict[str, FunctionQuota] = Field(default_factory=dict)

    def quotas(self) -> list[Quota]:
        """The limits, by function."""
        return [limits.quota(name) for name, limits in sorted(self.functions.items())]
