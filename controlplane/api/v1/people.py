"""People: who may sign in, and as what. They are made with a link that signs them in once."""

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.accounts import selectors
from controlplane.accounts.access import Role, Scope
from controlplane.accounts.models import User
from controlplane.accounts.permissions import request_actor
from controlplane.accounts.services.login_links import create_login_link, link_address
from controlplane.accounts.services.users import change_user, create_user
from controlplane.errors import Conflict
from controlplane.problem_schema import PROBLEMS

_TAG = ["people"]
_ROLES = [(role.value, role.value) for role in Role]
_ROLE_HELP = "Viewers look, operators act on instances, policies and alerts, admins do everything."


class PersonSerializer(serializers.ModelSerializer[User]):
    """A person."""

    class Meta:
        model = User
        fields = ["username", "role", "is_active", "created_at", "last_login"]
        read_only_fields = fields


class MadePersonSerializer(PersonSerializer):
    """A person, with a link that signs in once, and is shown this once."""

    link = serializers.URLField()

    class Meta(PersonSerializer.Meta):
        fields = [*PersonSerializer.Meta.fields, "link"]
        read_only_fields = fields


@extend_schema_serializer(
    examples=[OpenApiExample("Somebody who looks on", value={"username": "vera", "role": "viewer"}, request_only=True)]
)
class NewPersonSerializer(serializers.Serializer[Any]):
    """A person to be made."""

    username = serializers.CharField(max_length=150, help_text="Letters, digits and @ . + - _; it stays as it is.")
    role = serializers.ChoiceField(choices=_ROLES, help_text=_ROLE_HELP)


@extend_schema_serializer(examples=[OpenApiExample("Close an account", value={"is_active": False}, request_only=True)])
class PersonChangeSerializer(serializers.Serializer[Any]):
    """What may be changed."""

    role = serializers.ChoiceField(choices=_ROLES, required=False)
    is_active = serializers.BooleanField(required=False)


class PersonView(GenericAPIView[User]):
    """What all views of people share."""

    read_scope = Scope.ADMIN
    write_scope = Scope.ADMIN
    serializer_class = PersonSerializer
    queryset = User.objects.none()

    def with_link(self, request: Request, user: User) -> Response:
        """Answer with a person and a new sign-in link."""
        secret = create_login_link(actor=request_actor(request), user=user)
        link = link_address(secret, request.build_absolute_uri("/"))
        return Response({**PersonSerializer(user).data, "link": link}, status=201)


class People(PersonView):
    """The list, and new ones."""

    @extend_schema(responses={200: PersonSerializer(many=True)} | PROBLEMS.read, tags=_TAG, operation_id="people_list")
    def get(self, request: Request) -> Response:
        """List people, by name."""
        page = self.paginate_queryset(selectors.users())
        return self.get_paginated_response(PersonSerializer(page, many=True).data)

    @extend_schema(request=NewPersonSerializer, responses={201: MadePersonSerializer} | PROBLEMS.change, tags=_TAG)
    def post(self, request: Request) -> Response:
        """Make a person without a password; the answer has a link that signs in once, and is never shown again."""
        sent = NewPersonSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        role = Role(sent.validated_data["role"])
        username = sent.validated_data["username"]
        return self.with_link(request, create_user(actor=request_actor(request), username=username, role=role))


class PersonDetail(PersonView):
    """One person."""

    @extend_schema(responses={200: PersonSerializer} | PROBLEMS.read, tags=_TAG)
    def get(self, request: Request, username: str) -> Response:
        """Show a person."""
        return Response(PersonSerializer(selectors.user_named(username)).data)

    @extend_schema(request=PersonChangeSerializer, responses={200: PersonSerializer} | PROBLEMS.change, tags=_TAG)
    def patch(self, request: Request, username: str) -> Response:
        """Give another role, close the account, or open it again; the last administrator stays one."""
        sent = PersonChangeSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        role = sent.validated_data.get("role")
        changed = change_user(
            actor=request_actor(request),
            username=username,
            role=None if role is None else Role(role),
            is_active=sent.validated_data.get("is_active"),
        )
        return Response(PersonSerializer(changed).data)


class PersonLink(PersonView):
    """Sign-in links."""

    @extend_schema(request=None, responses={201: MadePersonSerializer} | PROBLEMS.change, tags=_TAG)
    def post(self, request: Request, username: str) -> Response:
        """Make a link that signs a person in once, within twelve hours."""
        user = selectors.user_named(username)
        if not user.is_active:
            raise Conflict(f"The account of {username} is closed.")
        return self.with_link(request, user)
