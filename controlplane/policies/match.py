"""The match of a workload: plain JSON with the fields of :class:`router.core.workload_match.WorkloadMatch`."""

from collections.abc import Mapping
from typing import Any

import msgspec

from controlplane.errors import Invalid
from controlplane.plain_words import in_plain_words
from router.core.workload_match import WorkloadMatch, match_faults


def parse_match(match: Mapping[str, Any]) -> WorkloadMatch:
    """Return the match that some JSON stands for.

    :raises Invalid: saying what is wrong with it.
    """
    try:
        found = msgspec.convert(dict(match), type=WorkloadMatch)
    except msgspec.ValidationError as error:
        raise Invalid({"match": [in_plain_words(error)]}) from error
    if faults := match_faults(found):
        raise Invalid({"match": faults})
    return found
