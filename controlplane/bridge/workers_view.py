"""`GET /api/v1/router/workers`: the convergence of every worker."""

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.accounts.access import Scope
from controlplane.bridge.workers import convergence
from controlplane.problem_schema import PROBLEMS


class WorkerSerializer(serializers.Serializer[object]):
    """One router worker."""

    name = serializers.CharField()
    version = serializers.CharField()
    started_unix_s = serializers.FloatField()
    config_revision = serializers.IntegerField(help_text="The revision that it routes by.")
    config_error = serializers.CharField(allow_null=True, help_text="Why it refused the newest document, if it did.")
    in_flight = serializers.IntegerField()
    prefix_blocks = serializers.IntegerField()
    prefix_capacity_blocks = serializers.IntegerField()
    rss_bytes = serializers.IntegerField()
    age_s = serializers.FloatField(help_text="Seconds since it was heard.")
    live = serializers.BooleanField(help_text="Whether it was heard in the last seconds.")
    heard_by = serializers.CharField(help_text="The web process that it reports to: its host and process id.")
    has_namesake = serializers.BooleanField(
        help_text="Whether an older process reports under the same name. It is refused: give each a name of its own."
    )


class ConvergenceSerializer(serializers.Serializer[object]):
    """The newest revision, and who runs it."""

    revision = serializers.IntegerField()
    applied = serializers.BooleanField(help_text="Whether every live worker runs the newest revision.")
    whole = serializers.BooleanField(
        help_text="Whether all web processes hear one another; while Redis is away, workers of others are missing."
    )
    workers = WorkerSerializer(many=True)


class RouterWorkers(APIView):
    """Router workers and the configuration that each runs."""

    read_scope = Scope.READ

    @extend_schema(responses={200: ConvergenceSerializer} | PROBLEMS.read, tags=["router"])
    def get(self, request: Request) -> Response:
        """Return the newest revision, whether every live worker applied it, and each worker."""
        return Response(ConvergenceSerializer(convergence()).data)
