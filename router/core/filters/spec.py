"""What a filter is."""

from collections.abc import Callable

from router.core.instance import InstanceView
from router.core.request import Request

Filter = Callable[[Request, InstanceView], str | None]
"""Return why the instance is out for this request, or None."""
