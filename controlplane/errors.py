"""What can go wrong in the control plane; each kind has a stable code and a place in HTTP.

::

    ControlPlaneError
    ├── Invalid               400  the request names a value that cannot be (field by field)
    ├── NotFound              404
    ├── Conflict              409  the request is right, but not now
    │   ├── NameTaken
    │   ├── IllegalTransition      the life-cycle has no such move from here
    │   ├── RequestsInFlight       removing would cut requests; `force` removes nevertheless
    │   └── InUse                  something else refers to it
    ├── StaleRevision         412  somebody else changed it since it was read
    ├── RevisionRequired      428  the request must say which revision it changes
    ├── TooLarge              413  more bytes than may be
    └── Forbidden             403

This module knows no framework; :mod:`controlplane.problems` turns the tree into problem+json, in one place.
"""

from collections.abc import Mapping, Sequence
from typing import Any


class ControlPlaneError(Exception):
    """Base of the tree; ``extra`` goes into the answer beside the message."""

    code = "control_plane_error"
    status = 500
    title = "Something went wrong"

    def __init__(self, message: str, **extra: Any) -> None:
        super().__init__(message)
        self.extra = extra


class Invalid(ControlPlaneError):
    """Values that cannot be; ``fields`` maps a field's name to its faults."""

    code = "invalid"
    status = 400
    title = "The request has invalid values"

    def __init__(self, fields: Mapping[str, Sequence[str]]) -> None:
        super().__init__("; ".join(f"{name}: {' '.join(faults)}" for name, faults in fields.items()))
        self.fields = {name: list(faults) for name, faults in fields.items()}


class NotFound(ControlPlaneError):
    """There is no such thing."""

    code = "not_found"
    status = 404
    title = "Not found"


class Conflict(ControlPlaneError):
    """The request is well formed, but the present state forbids it."""

    code = "conflict"
    status = 409
    title = "Conflict with the present state"


class NameTaken(Conflict):
    """Another one has this name."""

    code = "name_taken"
    title = "The name is taken"


class IllegalTransition(Conflict):
    """The life-cycle has no such move."""

    code = "illegal_transition"
    title = "Not possible in this state"


class RequestsInFlight(Conflict):
    """Requests are in flight at the instance."""

    code = "requests_in_flight"
    title = "Requests are in flight"


class InUse(Conflict):
    """Something else refers to it."""

    code = "in_use"
    title = "Still in use"


class StaleRevision(ControlPlaneError):
    """Somebody else changed it since it was read."""

    code = "stale_revision"
    status = 412
    title = "Changed since you read it"


class RevisionRequired(ControlPlaneError):
    """The request must carry ``If-Match``."""

    code = "revision_required"
    status = 428
    title = "If-Match is required"


class TooLarge(ControlPlaneError):
    """More bytes than may be, packed or unpacked."""

    code = "too_large"
    status = 413
    title = "Too large"


class Forbidden(ControlPlaneError):
    """The caller may not do this."""

    code = "forbidden"
    status = 403
    title = "Not allowed"
