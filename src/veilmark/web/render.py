"""Templates: where they are, and what all of them know."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from veilmark import __version__
from veilmark.messages import said_by
from veilmark.readable import probability
from veilmark.web.access.users import ROLES
from veilmark.web.spelling import FIELDS

if TYPE_CHECKING:
    from veilmark.web.here import Here

FOLDER = Path(__file__).parent


@cache
def environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=said_by(FIELDS),
    )
    made.filters["count"] = lambda number: "–" if number is None else f"{number:,}"
    made.filters["percent"] = lambda share: "–" if share is None else f"{share:.1%}"
    made.filters["number"] = lambda x: "–" if x is None else f"{x:,.4g}"
    made.filters["part"] = lambda text: quote(str(text), safe="")
    made.filters["moment"] = lambda time: str(time or "–").replace("T", " ").replace("+00:00", " UTC")
    made.filters["probability"] = probability
    made.globals["version"] = __version__
    made.globals["roles"] = ROLES
    return made


def render(here: Here, template: str, status: int, context: dict[str, Any]) -> HTMLResponse:
    """A page for somebody who is in."""
    session = here.session
    notice, session.notice = session.notice, None
    links = [nav for nav in here.request.app.state.nav if session.role in nav.roles]
    here_url = here.request.url.path
    fitting = [nav for nav in links if (here_url + "/").startswith(nav.url(session.study) + "/")]
    known = {
        "here": here,
        "session": session,
        "csrf": session.csrf,
        "notice": notice,
        "current": session.study,
        "nav": [(nav.title, nav.url(session.study), nav) for nav in links],
        "active": max(fitting, key=lambda nav: len(nav.url(session.study)), default=None),
        "path": here_url,
        "problem": None,
    }
    return HTMLResponse(environment().get_template(template).render(known | context), status)


def render_plain(template: str, status: int = 200, **context: Any) -> HTMLResponse:
    """A page for a stranger: the log-in, or an error."""
    return HTMLResponse(environment().get_template(template).render({"nav": [], "session": None, **context}), status)
