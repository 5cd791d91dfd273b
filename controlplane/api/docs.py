"""The OpenAPI document and its reader, served locally and under the strict content policy."""

from typing import Any

from csp.constants import SELF, UNSAFE_INLINE
from csp.decorators import csp_update
from django.utils.decorators import method_decorator
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.permissions import AllowAny


class ApiSchema(SpectacularAPIView):
    """The OpenAPI 3.1 document."""

    permission_classes = [AllowAny]


@method_decorator(csp_update({"style-src": [SELF, UNSAFE_INLINE]}), name="dispatch")
class ApiDocs(SpectacularSwaggerSplitView):
    """A reader of the document; its own style sheet is inline, no script is."""

    permission_classes = [AllowAny]
    url_name = "api-schema"


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How the schema describes bearer tokens."""

    target_class = "controlplane.accounts.authentication.BearerAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """Describe the scheme."""
        return {"type": "http", "scheme": "bearer", "description": "An API token: `pointsman token create`."}
