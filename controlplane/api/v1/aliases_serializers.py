"""What aliases look like in JSON."""

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema_field, extend_schema_serializer
from rest_framework import serializers

from controlplane.aliases.models import ModelAlias
from controlplane.aliases.target import MOST_WEIGHT, Target, shares
from controlplane.fleet.selectors import ModelsInRotation


class TargetSerializer(serializers.Serializer[Any]):
    """A model behind an alias."""

    model = serializers.CharField(max_length=300, help_text="As engines name it.")
    weight = serializers.FloatField(
        default=1.0, max_value=MOST_WEIGHT, help_text="Above 0; relative to the weights of the others."
    )


class TargetShareSerializer(TargetSerializer):
    """A model behind an alias, with what its weight comes to."""

    weight = serializers.FloatField()
    share = serializers.FloatField(help_text="Share of the requests, 0..1.")
    serving = serializers.IntegerField(help_text="Instances in rotation that serve it.")


class AliasSerializer(serializers.ModelSerializer[ModelAlias]):
    """An alias; ``context["models"]`` are the models in rotation."""

    targets = serializers.SerializerMethodField()
    hides_model = serializers.SerializerMethodField(
        help_text="Whether instances in rotation serve a model of this name: requests go to the targets nevertheless."
    )

    class Meta:
        model = ModelAlias
        fields = ["id", "name", "description", "targets", "hides_model", "created_at", "updated_at"]
        read_only_fields = fields

    @extend_schema_field(TargetShareSerializer(many=True))
    def get_targets(self, alias: ModelAlias) -> list[dict[str, Any]]:
        """Return the targets in their order."""
        models: ModelsInRotation = self.context["models"]
        return [
            {"model": target.model, "weight": target.weight, "share": share, "serving": models.serving(target.model)}
            for target, share in zip(alias.split, shares(alias.split), strict=True)
        ]

    @extend_schema_field(serializers.BooleanField())
    def get_hides_model(self, alias: ModelAlias) -> bool:
        """Return whether a model has the name by now."""
        models: ModelsInRotation = self.context["models"]
        return alias.name in models.by_name


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "One model", value={"targets": [{"model": "Qwen/Qwen3-32B"}], "description": "What most ask for."}
        ),
        OpenApiExample(
            "A canary",
            value={
                "targets": [{"model": "Qwen/Qwen3-32B", "weight": 95}, {"model": "Qwen/Qwen3-32B-FP8", "weight": 5}]
            },
        ),
    ]
)
class AliasSettingsSerializer(serializers.Serializer[Any]):
    """What an alias stands for; what is left out has its default."""

    targets = TargetSerializer(many=True)
    description = serializers.CharField(
        max_length=10_000, allow_blank=True, default="", help_text="For people; nothing reads it."
    )

    def split(self) -> list[Target]:
        """Return the targets, as values; only after ``is_valid()``."""
        return [Target(**target) for target in self.validated_data["targets"]]
