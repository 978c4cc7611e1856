"""Submissions in columns: the common fields are checked once for each form, then each payload."""

from __future__ import annotations

from ..model.errors import InvalidRequest, UserError
from ..stores.queue.queue import NewItem
from ..wire.v1 import gateway_pb2 as pb
from .submission import SubmissionRule, refused, submission_key


class WorkloadColumns:
    """The workloads of `alike`; `count` is their number, `now` is wall clock seconds. Raises InvalidRequest or
    UnknownFunction for a wrong form, with the number of its first workload."""

    def __init__(self, rule: SubmissionRule, alike: pb.Alike, now: float) -> None:
        self._payloads, self._form_of = [*alike.payloads], [*alike.form_of]
        self.count = len(self._payloads)
        rule.check_count(self.count)
        self._check(len(alike.forms))
        self._forms = []
        for place, form in enumerate(alike.forms):
            try:
                self._forms.append(rule.form(form, now))
            except UserError as error:
                first = self._form_of.index(place) if place in self._form_of else 0
                raise refused(error, first, self.count) from None
        self._stem = submission_key(f"{alike.token}{0:06x}")[:-6] if alike.token else ""

    def _check(self, forms: int) -> None:
        if len(self._form_of) != self.count if self._form_of else forms != 1:
            raise InvalidRequest(
                f"{self.count} workloads of {forms} forms: expected one form, or the form of each workload"
            )
        if self._form_of and max(self._form_of) >= forms:
            raise InvalidRequest(f"a workload is of form {max(self._form_of)}: there are {forms}")

    def items(self, start: int, stop: int) -> list[NewItem]:
        """The items of the workloads at these places. Raises InvalidPayload with the number of the first wrong one."""
        stop = min(stop, self.count)
        payloads = self._payloads[start:stop]
        forms = [self._forms[number] for number in self._form_of[start:stop]] or self._forms * len(payloads)
        place = start
        try:
            for payload, (_, check) in zip(payloads, forms, strict=True):
                check(payload)
                place += 1
        except UserError as error:
            raise refused(error, place, self.count) from None
        tokens = [f"{self._stem}{place:06x}" for place in range(start, stop)] if self._stem else [""] * len(payloads)
        return [
            NewItem(form.kind, payload, form.due, "", form.headers, token, form.expires_at, form.on_done)
            for payload, token, (form, _) in zip(payloads, tokens, forms, strict=True)
        ]
