"""Tests of the index and of the hasher run on both implementations; the compiled one skips where it is missing."""

from collections.abc import Callable
from types import ModuleType

import pytest

from router.core.prefix import reference
from router.core.prefix.chain import HashChain

try:
    from router.core.prefix import _native
except ImportError:
    _native = None

IMPLEMENTATIONS = ["reference", pytest.param("native", marks=pytest.mark.skipif(_native is None, reason="not built"))]

NewIndex = Callable[..., reference.ReferencePrefixIndex]


@pytest.fixture(params=IMPLEMENTATIONS, scope="session")
def new_index(request: pytest.FixtureRequest) -> NewIndex:
    """The index class under test."""
    return reference.ReferencePrefixIndex if request.param == "reference" else _native.NativePrefixIndex


@pytest.fixture(params=IMPLEMENTATIONS, scope="session")
def native(request: pytest.FixtureRequest) -> ModuleType:
    """The implementation under test, whole."""
    return reference if request.param == "reference" else _native


@pytest.fixture(params=IMPLEMENTATIONS, scope="session")
def hash_chain(request: pytest.FixtureRequest) -> HashChain:
    """The hash under test."""
    return reference.hash_chain if request.param == "reference" else _native.hash_chain
