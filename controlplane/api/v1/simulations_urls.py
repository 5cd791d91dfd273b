"""Paths of simulations and their traces below /api/v1/."""

from django.urls import path

from controlplane.api.v1 import simulations, simulations_traces

urlpatterns = [
    path("simulations/", simulations.Simulations.as_view(), name="simulations"),
    path("simulations/traces/", simulations_traces.Traces.as_view(), name="simulation-traces"),
    path("simulations/traces/<uuid:trace_id>/", simulations_traces.TraceDetail.as_view(), name="simulation-trace"),
    path("simulations/recordings/", simulations_traces.Recordings.as_view(), name="simulation-recordings"),
    path("simulations/<uuid:simulation_id>/", simulations.SimulationDetail.as_view(), name="simulation"),
    path("simulations/<uuid:simulation_id>/cancel/", simulations.SimulationCancel.as_view(), name="simulation-cancel"),
    path("simulations/<uuid:simulation_id>/result/", simulations.SimulationResult.as_view(), name="simulation-result"),
    path(
        "simulations/<uuid:simulation_id>/report.html/",
        simulations.SimulationReport.as_view(),
        name="simulation-report",
    ),
    path("simulations/<uuid:simulation_id>/draft/", simulations.SimulationDraft.as_view(), name="simulation-draft"),
]
