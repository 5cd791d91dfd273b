"""Settings: from the environment only; every name is documented in docs/reference/settings.

Nothing here is secret, nothing depends on a file of the checkout, and every refused value stops the start.
"""

from pathlib import Path

from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from controlplane import filesystem_broker
from controlplane.accounts.access import Role, Scope
from controlplane.bridge import openapi as bridge_openapi
from controlplane.databases import database_settings, telemetry_alias
from controlplane.env import Environment, InvalidSetting
from controlplane.lab.lifecycle import State as SimulationState
from controlplane.sealing import derived_from
from controlplane.secret_key import secret_key
from router.core.instance import InstanceState
from router.core.preload_budget import PreloadBudget

BASE_DIR = Path(__file__).resolve().parent.parent
env = Environment()

try:
    DATA_DIR = env.path("POINTSMAN_DATA_DIR", Path(".data"))
    PRODUCTION = env.boolean("POINTSMAN_PRODUCTION", default=False)
    DEBUG = env.boolean("POINTSMAN_DEBUG", default=False)
    SECRET_KEY = secret_key(env.secret("POINTSMAN_SECRET_KEY"), DATA_DIR, PRODUCTION)
    _LOCAL_HOSTS = () if PRODUCTION else ("localhost", "127.0.0.1", "[::1]")
    ALLOWED_HOSTS = list(env.items("POINTSMAN_ALLOWED_HOSTS", _LOCAL_HOSTS))
    CSRF_TRUSTED_ORIGINS = list(env.items("POINTSMAN_TRUSTED_ORIGINS"))
    HTTPS = env.boolean("POINTSMAN_HTTPS", default=PRODUCTION)
    BEHIND_TLS_PROXY = env.boolean("POINTSMAN_BEHIND_TLS_PROXY", default=False)
    PUBLIC_URL = env.optional("POINTSMAN_PUBLIC_URL")
    WEB_URL = env.text("POINTSMAN_WEB_URL", "http://127.0.0.1:8000")

    DATABASE_URL = env.secret("DATABASE_URL")
    REDIS_URL = env.secret("REDIS_URL")
    REDIS_NAMESPACE = f"{{pointsman:{derived_from(SECRET_KEY, 'names in Redis', 6).hex()}}}"
    DATABASES = database_settings(DATABASE_URL, DATA_DIR)
    TELEMETRY_DATABASE = telemetry_alias(DATABASE_URL)

    PROBE_INTERVAL_S = env.number("POINTSMAN_PROBE_INTERVAL_S", 2.0, minimum=0.2, maximum=3600)
    PROBE_TIMEOUT_S = env.number("POINTSMAN_PROBE_TIMEOUT_S", 2.0, minimum=0.1, maximum=60)
    PROBE_FAILURES_DOWN = env.integer("POINTSMAN_PROBE_FAILURES_DOWN", 3, minimum=1, maximum=100)
    PROBE_SUCCESSES_UP = env.integer("POINTSMAN_PROBE_SUCCESSES_UP", 2, minimum=1, maximum=100)
    WARMING_S = env.number("POINTSMAN_WARMING_S", 300.0, minimum=0, maximum=86_400)
    REMOVE_EXPIRED_AFTER_S = env.number("POINTSMAN_REMOVE_EXPIRED_AFTER_S", 3600.0, minimum=1, maximum=31_536_000)
    ALLOW_LINK_LOCAL = env.boolean("POINTSMAN_ALLOW_LINK_LOCAL", default=False)
    REQUIRE_KEY = env.boolean("POINTSMAN_REQUIRE_KEY", default=False)
    PRELOAD = env.boolean("POINTSMAN_PRELOAD", default=True)
    PRELOAD_PREFIXES = env.integer("POINTSMAN_PRELOAD_PREFIXES", PreloadBudget().most_prefixes, minimum=1, maximum=64)
    ROUTER_URL = env.text("POINTSMAN_ROUTER_URL", "http://127.0.0.1:8080")
    AUDIT_RETENTION_DAYS = env.integer("POINTSMAN_AUDIT_RETENTION_DAYS", 365, minimum=1, maximum=36_500)
    DECISION_RETENTION_DAYS = env.integer("POINTSMAN_DECISION_RETENTION_DAYS", 30, minimum=1, maximum=36_500)
    RECORD = env.boolean("POINTSMAN_RECORD", default=False)
    LAB_REQUESTS = env.integer("POINTSMAN_LAB_REQUESTS", 20_000, minimum=10, maximum=10_000_000)
    LAB_TIME_LIMIT_S = env.number("POINTSMAN_LAB_TIME_LIMIT_S", 900.0, minimum=1, maximum=86_400)
    LAB_CONCURRENT = env.integer("POINTSMAN_LAB_CONCURRENT", 1, minimum=1, maximum=64)
    LAB_PROCESSES = env.integer("POINTSMAN_LAB_PROCESSES", 1, minimum=1, maximum=256)
    LAB_UPLOAD_MIB = env.integer("POINTSMAN_LAB_UPLOAD_MIB", 32, minimum=1, maximum=4096)
except InvalidSetting as error:
    raise ImproperlyConfigured(str(error)) from error

ENVIRONMENT = tuple(env.readings.values())
"""What was read, for people to see; without the values of secrets.

``REDIS_NAMESPACE`` is what keys in Redis begin with, because several installations may share a server; its braces keep
all keys of one on the same node of a cluster."""

# -- Composition ----------------------------------------------------------------------------------------------------
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_htmx",
    "csp",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "controlplane.accounts",
    "controlplane.fleet",
    "controlplane.policies",
    "controlplane.aliases",
    "controlplane.admission",
    "controlplane.telemetry",
    "controlplane.decisions",
    "controlplane.slos",
    "controlplane.alerts",
    "controlplane.preloading",
    "controlplane.lab",
    "controlplane.bridge",
    "controlplane.api",
    "controlplane.ops",
    "dashboards",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "controlplane.ops.static.StaticFilesMiddleware",
    "controlplane.api.nul.refuse_nul",
    "controlplane.api.slashes.api_slashes",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "dashboards.refusal.answer_kept_forms",
    "dashboards.posted_only.lead_to_pages",
    "dashboards.signed_out.tell_parts_that_nobody_is_signed_in",
]
ROOT_URLCONF = "controlplane.urls"
ASGI_APPLICATION = "controlplane.asgi.application"
CELERY_APPLICATION = "controlplane.celery"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

# -- Rows -----------------------------------------------------------------------------------------------------------
DATABASE_ROUTERS = ["controlplane.databases.TelemetryRouter"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}

# -- People ---------------------------------------------------------------------------------------------------------
AUTH_USER_MODEL = "accounts.User"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "login"

# -- Safety ---------------------------------------------------------------------------------------------------------
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = HTTPS
SESSION_COOKIE_NAME = "pointsman_session"
CSRF_COOKIE_NAME = "pointsman_csrf"
CSRF_COOKIE_SECURE = HTTPS
CSRF_COOKIE_SAMESITE = "Lax"
SECURE_SSL_REDIRECT = HTTPS
SECURE_REDIRECT_EXEMPT = [r"^(livez|readyz|metrics)$", r"^api/v1/router/"]
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if BEHIND_TLS_PROXY else None
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:", "blob:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "manifest-src": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
        "base-uri": [NONE],
        "object-src": [NONE],
    }
}
DATA_UPLOAD_MAX_MEMORY_SIZE = 8 * 1024 * 1024

# -- Files ----------------------------------------------------------------------------------------------------------
STATIC_URL = "/static/"
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG
WHITENOISE_MAX_AGE = 0  # asked for again each time, answered 304 while unchanged: no old script after an upgrade

# -- Language and time ----------------------------------------------------------------------------------------------
LANGUAGE_CODE = "en"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"

# -- REST -----------------------------------------------------------------------------------------------------------
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "controlplane.accounts.authentication.BearerAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["controlplane.accounts.permissions.HasScope"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["controlplane.api.json_parser.TextParser"],
    "DEFAULT_PAGINATION_CLASS": "controlplane.api.pagination.NumberedPages",
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_METADATA_CLASS": None,
    "URL_FORMAT_OVERRIDE": None,
    "EXCEPTION_HANDLER": "controlplane.problems.handle",
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Pointsman",
    "DESCRIPTION": "Instances, workloads, policies, SLOs, tenants, scores. Errors are problem+json with stable codes.",
    "VERSION": "v1",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": r"/api/v1",
    "COMPONENT_SPLIT_REQUEST": True,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
    "APPEND_PATHS": bridge_openapi.PATHS,
    "ENUM_NAME_OVERRIDES": {
        "InstanceState": [(state.value, state.value) for state in InstanceState],
        "InstanceRole": [("both", "Both"), ("prefill", "Prefill"), ("decode", "Decode")],
        "Role": [(role.value, role.value) for role in Role],
        "Scope": [(scope.value, scope.value) for scope in Scope],
        "AlertState": ["firing", "acknowledged", "resolved"],
        "DeliveryState": "controlplane.alerts.models.DeliveryState",
        "SimulationState": [(state.value, state.value) for state in SimulationState],
    },
}

# -- Tasks ----------------------------------------------------------------------------------------------------------
CELERY_FOLDER = DATA_DIR / "celery"
CELERY_BROKER_URL = REDIS_URL or f"{filesystem_broker.SCHEME}://localhost/"
CELERY_BROKER_TRANSPORT_OPTIONS: dict[str, object] = (
    {
        "socket_timeout": 2,
        "socket_connect_timeout": 2,
        "visibility_timeout": 3600,
        "global_keyprefix": f"{REDIS_NAMESPACE}:",
    }
    if REDIS_URL
    else {
        "data_folder_in": str(CELERY_FOLDER / "messages"),
        "data_folder_out": str(CELERY_FOLDER / "messages"),
        "control_folder": str(CELERY_FOLDER / "control"),
        "processed_folder": str(CELERY_FOLDER / "taken"),
        "store_processed": False,
        "polling_interval": 0.1,
    }
)
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = False
CELERY_TASK_TIME_LIMIT = 300
CELERY_WORKER_PREFETCH_MULTIPLIER = 8
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_REDIRECT_STDOUTS = False
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
CELERY_WORKER_SEND_TASK_EVENTS = False
CELERY_TASK_PUBLISH_RETRY = False
CELERY_TIMEZONE = "UTC"
CELERY_BEAT_SCHEDULE_FILENAME = str(CELERY_FOLDER / "beat-schedule")
CELERY_BEAT_MAX_LOOP_INTERVAL = 1
CELERY_BEAT_SCHEDULE = {
    "probe instances": {"task": "fleet.probe_due", "schedule": 1.0, "options": {"expires": 1}},
    "count SLO minutes": {"task": "slos.count_minutes", "schedule": 30.0, "options": {"expires": 30}},
    "prune rows": {"task": "ops.prune", "schedule": 86_400.0},
    "sweep the laboratory": {"task": "lab.sweep", "schedule": 5.0, "options": {"expires": 5}},
    "evaluate alerts": {"task": "alerts.evaluate", "schedule": 10.0, "options": {"expires": 10}},
    "plan preloads": {"task": "preloading.plan", "schedule": 2.0, "options": {"expires": 2}},
    "send preloads": {"task": "preloading.send", "schedule": 2.0, "options": {"expires": 2}},
    "deliver notifications": {"task": "alerts.deliver", "schedule": 2.0, "options": {"expires": 2}},
    "follow leases": {"task": "fleet.follow_leases", "schedule": 1.0, "options": {"expires": 1}},
}

# -- Logs -----------------------------------------------------------------------------------------------------------
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
    "loggers": {
        "httpx": {"level": "WARNING"},
        "httpcore": {"level": "WARNING"},
        "django.request": {"level": "ERROR"},
        "celery.app.trace": {"level": "WARNING"},
        "celery.worker.strategy": {"level": "WARNING"},
        "celery.beat": {"level": "WARNING"},
    },
}
