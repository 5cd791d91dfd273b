"""Every path of the web process; the pages of the dashboards are composed here by name."""

from django.urls import include, path, re_path

from controlplane.api.docs import ApiDocs, ApiSchema
from controlplane.ops import health
from controlplane.problems import not_found

urlpatterns = [
    path("", include("controlplane.accounts.urls")),
    path("livez", health.livez, name="livez"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", health.metrics, name="metrics"),
    path("api/v1/router/", include("controlplane.bridge.urls")),
    path("api/v1/", include("controlplane.api.v1.urls")),
    path("api/schema/", ApiSchema.as_view(), name="api-schema"),
    path("api/docs/", ApiDocs.as_view(), name="api-docs"),
    re_path("^api/", not_found),
    path("", include("dashboards.urls")),
]
