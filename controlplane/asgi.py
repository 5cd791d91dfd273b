"""The composition root: HTTP by Django, WebSockets by the dashboards' routes, both behind one sign-in."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
django.setup(set_prefix=False)

from channels.auth import AuthMiddlewareStack  # noqa: E402  (needs the apps that the line above loads)
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from channels.security.websocket import AllowedHostsOriginValidator  # noqa: E402
from django.conf import settings  # noqa: E402

from controlplane.body_limit import BodyLimit  # noqa: E402
from controlplane.http import HttpApplication  # noqa: E402
from controlplane.lifespan import Lifespan  # noqa: E402
from dashboards.routing import websocket_urlpatterns  # noqa: E402

MOST_BODY_BYTES = (settings.LAB_UPLOAD_MIB + 1) << 20
"""An uploaded trace, the largest body there is, and the form around it."""

application = Lifespan(
    ProtocolTypeRouter(
        {
            "http": BodyLimit(HttpApplication(), MOST_BODY_BYTES),
            "websocket": AllowedHostsOriginValidator(AuthMiddlewareStack(URLRouter(websocket_urlpatterns))),
        }
    )
)
