"""Pages; included by ``controlplane.urls`` at the root.

A path that begins with ``+`` is a page of its own beside those of things with names: no name begins so.
"""

from django.urls import path

from dashboards.views import decisions, instances, live, palette

app_name = "dashboards"

urlpatterns = [
    path("", live.page, name="live"),
    path("live/frame/", live.frame, name="live-frame"),
    path("palette/", palette.entries, name="palette"),
    path("decisions/", decisions.page, name="decisions"),
    path("decisions/newer/", decisions.newer, name="decisions-newer"),
    path("decisions/<path:request_id>/", decisions.detail, name="decision"),
    path("instances/", instances.page, name="instances"),
    path("instances/+rows/", instances.rows, name="instances-rows"),
    path("instances/+new/", instances.register, name="instance-register"),
    path("instances/<str:name>/", instances.detail, name="instance"),
    path("instances/<str:name>/status/", instances.status, name="instance-status"),
    path("instances/<str:name>/remove/", instances.remove, name="instance-remove"),
    path("instances/<str:name>/<str:wish>/", instances.move, name="instance-move"),
]
