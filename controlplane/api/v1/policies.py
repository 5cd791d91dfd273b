"""Policies: drafted, published, brought back; revisions are never changed."""

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.accounts.access import Scope
from controlplane.accounts.permissions import request_actor
from controlplane.api.if_match import IF_MATCH, expected_revision
from controlplane.api.v1.policies_serializers import (
    ContentSerializer,
    NewPolicySerializer,
    PolicySerializer,
    PublicationSerializer,
    RevisionSerializer,
    RollbackSerializer,
)
from controlplane.errors import NotFound
from controlplane.policies import selectors
from controlplane.policies.models import Policy, PolicyRevision
from controlplane.policies.services import revisions
from controlplane.problem_schema import PROBLEMS

_TAG = ["policies"]


class PolicyView(GenericAPIView[Policy]):
    """What all views of policies share."""

    read_scope = Scope.READ
    write_scope = Scope.POLICIES
    serializer_class = PolicySerializer
    queryset = Policy.objects.none()

    def shown(self, name: str, status: int = 200) -> Response:
        """Answer with a policy as it stands, tagged with its live revision."""
        policy = selectors.policy_named(name)
        tag = {"ETag": f'"{policy.live.number if policy.live else 0}"'}
        return Response(PolicySerializer(policy).data, status=status, headers=tag)


class Policies(PolicyView):
    """The list, and new ones."""

    @extend_schema(
        responses={200: PolicySerializer(many=True)} | PROBLEMS.read, tags=_TAG, operation_id="policies_list"
    )
    def get(self, request: Request) -> Response:
        """List policies with their live revisions, by name."""
        page = self.paginate_queryset(selectors.policies())
        return self.get_paginated_response(PolicySerializer(page, many=True).data)

    @extend_schema(request=NewPolicySerializer, responses={201: PolicySerializer} | PROBLEMS.change, tags=_TAG)
    def post(self, request: Request) -> Response:
        """Make a policy; its first revision is live at once."""
        sent = NewPolicySerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        policy = revisions.create_policy(actor=request_actor(request), **sent.validated_data)
        return self.shown(policy.name, 201)


class PolicyDetail(PolicyView):
    """One policy."""

    @extend_schema(responses={200: PolicySerializer} | PROBLEMS.read, tags=_TAG)
    def get(self, request: Request, name: str) -> Response:
        """Show a policy."""
        return self.shown(name)

    @extend_schema(responses={204: OpenApiResponse(description="Deleted.")} | PROBLEMS.change, tags=_TAG)
    def delete(self, request: Request, name: str) -> Response:
        """Delete a policy that no workload uses."""
        revisions.delete_policy(actor=request_actor(request), name=name)
        return Response(status=204)


class PolicyDraft(PolicyView):
    """The draft of the next revision."""

    @extend_schema(
        request=ContentSerializer, parameters=[IF_MATCH], responses={200: PolicySerializer} | PROBLEMS.change, tags=_TAG
    )
    def put(self, request: Request, name: str) -> Response:
        """Keep a draft; what routes traffic stays as it is."""
        sent = ContentSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        content = sent.validated_data["content"]
        expected = expected_revision(request)
        revisions.save_draft(actor=request_actor(request), name=name, content=content, expected=expected)
        return self.shown(name)

    @extend_schema(responses={200: PolicySerializer} | PROBLEMS.change, tags=_TAG)
    def delete(self, request: Request, name: str) -> Response:
        """Forget the draft."""
        revisions.discard_draft(actor=request_actor(request), name=name)
        return self.shown(name)


class PolicyPublish(PolicyView):
    """Publishing."""

    @extend_schema(
        request=PublicationSerializer,
        parameters=[IF_MATCH],
        responses={200: PolicySerializer} | PROBLEMS.change,
        tags=_TAG,
    )
    def post(self, request: Request, name: str) -> Response:
        """Publish the draft, or the content sent, as the next revision."""
        sent = PublicationSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        revisions.publish(
            actor=request_actor(request), name=name, expected=expected_revision(request), **sent.validated_data
        )
        return self.shown(name)


class PolicyRollback(PolicyView):
    """Going back, which is going on with what was."""

    @extend_schema(
        request=RollbackSerializer,
        parameters=[IF_MATCH],
        responses={200: PolicySerializer} | PROBLEMS.change,
        tags=_TAG,
    )
    def post(self, request: Request, name: str) -> Response:
        """Publish an earlier revision's content as the next revision."""
        sent = RollbackSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        revisions.roll_back(
            actor=request_actor(request), name=name, expected=expected_revision(request), **sent.validated_data
        )
        return self.shown(name)


class PolicyRevisions(GenericAPIView[PolicyRevision]):
    """The history."""

    read_scope = Scope.READ
    serializer_class = RevisionSerializer
    queryset = PolicyRevision.objects.none()

    @extend_schema(
        responses={200: RevisionSerializer(many=True)} | PROBLEMS.read, tags=_TAG, operation_id="policy_revisions_list"
    )
    def get(self, request: Request, name: str) -> Response:
        """List the revisions of a policy, newest first."""
        page = self.paginate_queryset(selectors.revisions(name))
        return self.get_paginated_response(RevisionSerializer(page, many=True).data)


class PolicyRevisionDetail(PolicyView):
    """One revision."""

    @extend_schema(responses={200: RevisionSerializer} | PROBLEMS.read, tags=_TAG)
    def get(self, request: Request, name: str, number: int) -> Response:
        """Show one revision."""
        revision = selectors.revisions(name).filter(number=number).first()
        if revision is None:
            raise NotFound(f"Policy {name} has no revision {number}.")
        return Response(RevisionSerializer(revision).data)
