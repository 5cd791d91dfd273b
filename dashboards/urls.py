"""Pages; included by ``controlplane.urls`` at the root.

A path that begins with ``+`` is a page of its own beside those of things with names: no name begins so.
"""

from django.urls import include, path

from dashboards.views import audit, decisions, instances, lab, live, palette, policies, slos, tenants, workloads

app_name = "dashboards"

urlpatterns = [
    path("", live.page, name="live"),
    path("live/frame/", live.frame, name="live-frame"),
    path("live/past/", live.past, name="live-past"),
    path("live/instances.csv", live.export, name="live-export"),
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
    path("lab/", lab.page, name="lab"),
    path("lab/+rows/", lab.rows, name="lab-rows"),
    path("lab/+trace/", lab.upload, name="lab-upload"),
    path("lab/+trace/<uuid:trace_id>/delete/", lab.delete_trace, name="lab-trace-delete"),
    path("lab/<uuid:simulation_id>/", lab.detail, name="simulation"),
    path("lab/<uuid:simulation_id>/status/", lab.status, name="simulation-status"),
    path("lab/<uuid:simulation_id>/cancel/", lab.cancel, name="simulation-cancel"),
    path("lab/<uuid:simulation_id>/delete/", lab.delete, name="simulation-delete"),
    path("lab/<uuid:simulation_id>/draft/", lab.draft, name="simulation-draft"),
    path("lab/<uuid:simulation_id>/report.<str:kind>", lab.download, name="simulation-download"),
    path("policies/", policies.page, name="policies"),
    path("policies/+new/", policies.create, name="policy-create"),
    path("policies/<str:name>/", policies.detail, name="policy"),
    path("policies/<str:name>/preview/", policies.preview, name="policy-preview"),
    path("policies/<str:name>/edit/", policies.edit, name="policy-edit"),
    path("policies/<str:name>/rollback/", policies.roll_back, name="policy-rollback"),
    path("policies/<str:name>/delete/", policies.delete, name="policy-delete"),
    path("workloads/", workloads.page, name="workloads"),
    path("workloads/+rows/", workloads.rows, name="workloads-rows"),
    path("workloads/+new/", workloads.create, name="workload-create"),
    path("workloads/<str:name>/", workloads.change, name="workload-change"),
    path("workloads/<str:name>/delete/", workloads.delete, name="workload-delete"),
    path("alerts/", include("dashboards.alerts_urls")),
    path("audit/", audit.page, name="audit"),
    path("audit/<int:entry_id>/", audit.detail, name="audit-entry"),
    path("slos/", slos.page, name="slos"),
    path("slos/+put/", slos.put, name="slo-put"),
    path("slos/<str:workload>/delete/", slos.delete, name="slo-delete"),
    path("tenants/", tenants.page, name="tenants"),
    path("tenants/+new/", tenants.create, name="tenant-create"),
    path("tenants/<str:name>/", tenants.detail, name="tenant"),
    path("tenants/<str:name>/change/", tenants.change, name="tenant-change"),
    path("tenants/<str:name>/delete/", tenants.delete, name="tenant-delete"),
    path("tenants/<str:name>/keys/", tenants.create_key, name="tenant-key-create"),
    path("tenants/<str:name>/keys/<uuid:key_id>/", tenants.revoke_key, name="tenant-key-revoke"),
]
