"""Paths below /api/v1/."""

from django.urls import include, path

from controlplane.api.v1 import audit, instances, policies, policy_tools, preloads, slos, tenants, tokens, workloads

urlpatterns = [
    path("instances/", instances.Instances.as_view(), name="instances"),
    path("instances/<str:name>/", instances.InstanceDetail.as_view(), name="instance"),
    path("instances/<str:name>/heartbeat/", instances.Heartbeat.as_view(), name="instance-heartbeat"),
    path("instances/<str:name>/drain/", instances.Drain.as_view(), name="instance-drain"),
    path("instances/<str:name>/undrain/", instances.Undrain.as_view(), name="instance-undrain"),
    path("instances/<str:name>/maintenance/", instances.Maintenance.as_view(), name="instance-maintenance"),
    path("instances/<str:name>/preemption/", instances.Preemption.as_view(), name="instance-preemption"),
    path("policies/", policies.Policies.as_view(), name="policies"),
    path("policies/<str:name>/", policies.PolicyDetail.as_view(), name="policy"),
    path("policies/<str:name>/preview/", policy_tools.PolicyPreviewView.as_view(), name="policy-preview"),
    path("policies/<str:name>/diff/", policy_tools.PolicyDiff.as_view(), name="policy-diff"),
    path("policies/<str:name>/document/", policy_tools.PolicyDocumentView.as_view(), name="policy-document"),
    path("policy-presets/", policy_tools.PolicyPresets.as_view(), name="policy-presets"),
    path("policies/<str:name>/draft/", policies.PolicyDraft.as_view(), name="policy-draft"),
    path("policies/<str:name>/publish/", policies.PolicyPublish.as_view(), name="policy-publish"),
    path("policies/<str:name>/rollback/", policies.PolicyRollback.as_view(), name="policy-rollback"),
    path("policies/<str:name>/revisions/", policies.PolicyRevisions.as_view(), name="policy-revisions"),
    path(
        "policies/<str:name>/revisions/<int:number>/",
        policies.PolicyRevisionDetail.as_view(),
        name="policy-revision",
    ),
    path("workloads/", workloads.Workloads.as_view(), name="workloads"),
    path("workloads/<str:name>/", workloads.WorkloadDetail.as_view(), name="workload"),
    path("workloads/<str:name>/shadow/", workloads.WorkloadShadow.as_view(), name="workload-shadow"),
    path("slos/", slos.Slos.as_view(), name="slos"),
    path("slos/<str:workload>/", slos.SloDetail.as_view(), name="slo"),
    path("tenants/", tenants.Tenants.as_view(), name="tenants"),
    path("tenants/<str:name>/", tenants.TenantDetail.as_view(), name="tenant"),
    path("tenants/<str:name>/keys/", tenants.TenantKeys.as_view(), name="tenant-keys"),
    path("tenants/<str:name>/keys/<uuid:key_id>/", tenants.TenantKeyDetail.as_view(), name="tenant-key"),
    path("tenants/<str:name>/usage/", tenants.TenantUse.as_view(), name="tenant-usage"),
    path("", include("controlplane.api.v1.alerts_urls")),
    path("preloads/", preloads.Preloads.as_view(), name="preloads"),
    path("preloads/tenants/<str:name>/", preloads.TenantPrefixes.as_view(), name="preload-tenant"),
    path("", include("controlplane.api.v1.simulations_urls")),
    path("tokens/", tokens.Tokens.as_view(), name="tokens"),
    path("tokens/<uuid:token_id>/", tokens.TokenDetail.as_view(), name="token"),
    path("audit/", audit.AuditLog.as_view(), name="audit"),
]
