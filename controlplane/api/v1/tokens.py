"""API tokens: made (shown once), listed, revoked."""

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.accounts import selectors
from controlplane.accounts.access import Scope
from controlplane.accounts.models import ApiToken
from controlplane.accounts.permissions import request_actor
from controlplane.accounts.services.tokens import create_token, revoke_token
from controlplane.errors import NotFound
from controlplane.problem_schema import PROBLEMS

_TAG = ["tokens"]


class TokenSerializer(serializers.ModelSerializer[ApiToken]):
    """A token, without its text."""

    scopes = serializers.ListField(child=serializers.CharField())
    created_by = serializers.CharField(source="created_by.username", default=None, allow_null=True)

    class Meta:
        model = ApiToken
        fields = [
            "id",
            "name",
            "prefix",
            "scopes",
            "created_by",
            "created_at",
            "expires_at",
            "last_used_at",
            "revoked_at",
        ]
        read_only_fields = fields


@extend_schema_serializer(
    examples=[
        OpenApiExample("For registering", value={"name": "autoscaler", "scopes": ["instances"]}, request_only=True)
    ]
)
class NewTokenSerializer(serializers.Serializer[Any]):
    """A token to be made."""

    name = serializers.CharField(max_length=100)
    scopes = serializers.ListField(child=serializers.ChoiceField(choices=[s.value for s in Scope]), min_length=1)
    expires_at = serializers.DateTimeField(allow_null=True, default=None)


class MadeTokenSerializer(TokenSerializer):
    """A token that was just made, with its text, which is shown this once."""

    token = serializers.CharField()

    class Meta(TokenSerializer.Meta):
        fields = [*TokenSerializer.Meta.fields, "token"]
        read_only_fields = fields


class TokenView(GenericAPIView[ApiToken]):
    """What all views of tokens share."""

    read_scope = Scope.ADMIN
    write_scope = Scope.ADMIN
    serializer_class = TokenSerializer
    queryset = ApiToken.objects.none()


class Tokens(TokenView):
    """The list, and new ones."""

    @extend_schema(responses={200: TokenSerializer(many=True)} | PROBLEMS.read, tags=_TAG, operation_id="tokens_list")
    def get(self, request: Request) -> Response:
        """List tokens, newest first."""
        page = self.paginate_queryset(selectors.tokens())
        return self.get_paginated_response(TokenSerializer(page, many=True).data)

    @extend_schema(request=NewTokenSerializer, responses={201: MadeTokenSerializer} | PROBLEMS.change, tags=_TAG)
    def post(self, request: Request) -> Response:
        """Make a token; its text is in the answer, and never again."""
        sent = NewTokenSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        token, text = create_token(actor=request_actor(request), **sent.validated_data)
        return Response({**TokenSerializer(token).data, "token": text}, status=201)


class TokenDetail(TokenView):
    """One token."""

    @extend_schema(responses={200: TokenSerializer} | PROBLEMS.read, tags=_TAG)
    def get(self, request: Request, token_id: str) -> Response:
        """Show a token."""
        return Response(TokenSerializer(_find(token_id)).data)

    @extend_schema(responses={200: TokenSerializer} | PROBLEMS.change, tags=_TAG)
    def delete(self, request: Request, token_id: str) -> Response:
        """Revoke a token at once; its row stays, as a record."""
        return Response(TokenSerializer(revoke_token(actor=request_actor(request), token=_find(token_id))).data)


def _find(identity: str) -> ApiToken:
    token = selectors.tokens().filter(pk=identity).first()
    if token is None:
        raise NotFound("There is no such token.")
    return token
