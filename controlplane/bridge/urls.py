"""Paths below /api/v1/router/."""

from django.urls import path

from controlplane.bridge import views
from controlplane.bridge.workers_view import RouterWorkers

urlpatterns = [
    path("config/", views.RouterConfig.as_view(), name="router-config"),
    path("snapshots/", views.RouterSnapshots.as_view(), name="router-snapshots"),
    path("workers/", RouterWorkers.as_view(), name="router-workers"),
]
