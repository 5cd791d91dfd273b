"""Simulations: asked for, followed, cancelled, and what came out."""

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.renderers import JSONRenderer, StaticHTMLRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.accounts.access import Scope
from controlplane.accounts.permissions import request_actor
from controlplane.api.v1.policies_serializers import PolicySerializer
from controlplane.api.v1.simulations_serializers import (
    DraftSerializer,
    NewSimulationSerializer,
    ResultSerializer,
    SimulationSerializer,
)
from controlplane.errors import Invalid
from controlplane.lab import report, selectors
from controlplane.lab.lifecycle import State
from controlplane.lab.models import Simulation
from controlplane.lab.services import drafts, simulations
from controlplane.policies import selectors as policies
from controlplane.problem_schema import PROBLEMS

_TAG = ["simulations"]
_STATE = OpenApiParameter("state", str, enum=[state.value for state in State])


class SimulationView(GenericAPIView[Simulation]):
    """What all views of simulations share."""

    read_scope = Scope.READ
    write_scope = Scope.POLICIES
    serializer_class = SimulationSerializer
    queryset = Simulation.objects.none()

    def shown(self, simulation: Simulation, status: int = 200) -> Response:
        """Answer with a simulation."""
        return Response(SimulationSerializer(simulation).data, status=status)


class Simulations(SimulationView):
    """The list, and new ones."""

    @extend_schema(
        parameters=[_STATE],
        responses={200: SimulationSerializer(many=True)} | PROBLEMS.read,
        tags=_TAG,
        operation_id="simulations_list",
    )
    def get(self, request: Request) -> Response:
        """List simulations, newest first."""
        rows, wanted = selectors.simulations(), request.query_params.get("state")
        if wanted is not None and wanted not in set(State):
            raise Invalid({"state": [f"It must be one of: {', '.join(State)}."]})
        page = self.paginate_queryset(rows.filter(state=wanted) if wanted else rows)
        return self.get_paginated_response(SimulationSerializer(page, many=True).data)

    @extend_schema(request=NewSimulationSerializer, responses={201: SimulationSerializer} | PROBLEMS.change, tags=_TAG)
    def post(self, request: Request) -> Response:
        """Ask for a simulation; it runs as soon as those before it have ended."""
        sent = NewSimulationSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        values = dict(sent.validated_data)
        name = values.pop("name", "")
        made = simulations.create_simulation(actor=request_actor(request), settings=values, name=name)
        return self.shown(made, 201)


class SimulationDetail(SimulationView):
    """One simulation."""

    @extend_schema(responses={200: SimulationSerializer} | PROBLEMS.read, tags=_TAG)
    def get(self, request: Request, simulation_id: str) -> Response:
        """Show a simulation: its state, and how far it is."""
        return self.shown(selectors.simulation(simulation_id))

    @extend_schema(responses={204: OpenApiResponse(description="Deleted.")} | PROBLEMS.change, tags=_TAG)
    def delete(self, request: Request, simulation_id: str) -> Response:
        """Delete a simulation that has ended, with its result."""
        simulations.delete_simulation(actor=request_actor(request), simulation_id=simulation_id)
        return Response(status=204)


class SimulationCancel(SimulationView):
    """Cancelling."""

    @extend_schema(request=None, responses={200: SimulationSerializer} | PROBLEMS.change, tags=_TAG)
    def post(self, request: Request, simulation_id: str) -> Response:
        """Cancel a simulation; its process is ended within two seconds."""
        return self.shown(simulations.cancel_simulation(actor=request_actor(request), simulation_id=simulation_id))


class SimulationResult(SimulationView):
    """What came out."""

    @extend_schema(responses={200: ResultSerializer} | PROBLEMS.change, tags=_TAG)
    def get(self, request: Request, simulation_id: str) -> HttpResponse:
        """Show the figures of every run, and where they come from."""
        text = report.as_json(selectors.comparison(simulation_id))
        return HttpResponse(text, content_type="application/json")


class SimulationReport(SimulationView):
    """The page to keep."""

    renderer_classes = [StaticHTMLRenderer, JSONRenderer]

    @extend_schema(
        responses={(200, "text/html"): OpenApiTypes.STR} | PROBLEMS.change, tags=_TAG, operation_id="simulation_report"
    )
    def get(self, request: Request, simulation_id: str) -> HttpResponse:
        """Give one self-contained page with charts, to be opened from a file."""
        return html_report(selectors.simulation(simulation_id))


class SimulationDraft(SimulationView):
    """From a result to a policy."""

    @extend_schema(request=DraftSerializer, responses={200: PolicySerializer} | PROBLEMS.change, tags=_TAG)
    def post(self, request: Request, simulation_id: str) -> Response:
        """Keep a simulated policy as the draft of a stored one; what routes traffic stays as it is."""
        sent = DraftSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        policy, _ = drafts.draft_policy(
            actor=request_actor(request),
            simulation_id=simulation_id,
            label=sent.validated_data["policy"],
            name=sent.validated_data["name"],
        )
        return Response(PolicySerializer(policies.policy_named(policy.name)).data)


def html_report(simulation: Simulation) -> HttpResponse:
    """Answer with the report of a simulation, as a file: its script may not run in this site's pages."""
    text = report.as_html(selectors.comparison(simulation.pk))
    named = {"Content-Disposition": f'attachment; filename="simulation-{str(simulation.pk)[:8]}.html"'}
    return HttpResponse(text, content_type="text/html; charset=utf-8", headers=named)
