"""Django's own pages: the admin site and its static files. Imported with the first page asked for.

The REST interfaces are not here: they are the route table in `server.table`.
"""

from __future__ import annotations

from django.contrib import admin
from django.contrib.staticfiles.finders import AppDirectoriesFinder
from django.http import Http404, HttpRequest, HttpResponseBase
from django.urls import path, re_path
from django.views.static import serve

admin.autodiscover()
_finder = AppDirectoriesFinder()


def static_file(request: HttpRequest, path: str) -> HttpResponseBase:
    """A file some installed app ships; there is no collected directory to keep up to date."""
    found = _finder.find(path)
    if not found:
        raise Http404
    return serve(request, path, document_root=str(found)[: -len(path)])


urlpatterns = [
    re_path(r"^static/(?P<path>.+)$", static_file),
    path("admin/", admin.site.urls),
]
