"""Django's settings, derived from the configuration; nothing here is a default secret.

Cookies are marked secure and HSTS is sent when TLS is ours or a proxy's. On plain loopback HTTP
they cannot be, and the four deployment checks about it are silenced; on any other address without
TLS they are not, so `check --deploy` says so.
"""

from __future__ import annotations

from paddlecloud.server import configuration, database
from paddlecloud.server.secretfiles import secret_text

CONFIGURATION = configuration.load()
_listening = CONFIGURATION.listening
_is_https = _listening.tls or _listening.behind_tls_proxy

SECRET_KEY = secret_text(CONFIGURATION.storage.state_dir, "django-key")
DEBUG = False
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en-us"
USE_I18N = False
ALLOWED_HOSTS = list(_listening.allowed_hosts) or (
    ["127.0.0.1", "localhost", "[::1]"] if _listening.is_loopback else ["*"]
)

DATABASES = {"default": database.settings_for(CONFIGURATION.storage)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
AUTH_USER_MODEL = "accounts.Account"
AUTHENTICATION_BACKENDS = ["paddlecloud.server.accounts.backends.SlowedPasswords"]

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    # Simple: the admin's own modules are imported with its first page, not at start.
    "django.contrib.admin.apps.SimpleAdminConfig",
    "paddlecloud.server.accounts",
    "paddlecloud.server.groups",
    "paddlecloud.server.jobs",
    "paddlecloud.server.job_service",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "paddlecloud.server.pages"
WSGI_APPLICATION = None
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
STATIC_URL = "/static/"

PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.ScryptPasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]

SECURE_CONTENT_TYPE_NOSNIFF = False  # `serving` sets it on every answer, not only on pages
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = _is_https
CSRF_COOKIE_SECURE = _is_https
SECURE_SSL_REDIRECT = _is_https
SECURE_HSTS_SECONDS = 30 * 86400 if _is_https else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = _is_https
SECURE_HSTS_PRELOAD = _is_https
SECURE_PROXY_SSL_HEADER = (
    ("HTTP_X_FORWARDED_PROTO", "https") if _listening.behind_tls_proxy else None
)
X_FRAME_OPTIONS = "DENY"
SILENCED_SYSTEM_CHECKS = ["security.W006"]  # nosniff, see above
if _listening.is_loopback and not _is_https:
    SILENCED_SYSTEM_CHECKS += [f"security.W{number}" for number in ("004", "008", "012", "016")]
LOGGING_CONFIG = None  # the process sets up logging itself, before Django is there
