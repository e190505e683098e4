"""The web app: the workbench's verbs in a browser, on a workspace folder. Start it with `veilmark serve`.

    guard.py      what every request passes: host, session, size, security headers, audit log
    access.py     one-time link, log-in, sessions; users.py: accounts; here.py: who may call what
    workspace.py  the folder; paths that come from a request are resolved here and nowhere else
    jobs.py       long work; work.py: what runs in a job's own process
    render.py     templates; app.py puts it together; server.py serves it
    pages/        a module a page; templates/ and static/: how it looks

How to add a page, say Score (pages/measures.py, templates/measures.html are the shortest example)
--------------------------------------------------------------------------------------------------

1. `pages/score.py` is found by itself. It has a `router` and, to stand in the navigation, a `NAV`:

       router = APIRouter()
       NAV = Nav("Score", "/studies/{study}/score", 20, ("custodian", "analyst"))

   Order: Studies 10, Score 20, Anonymize 30, Release 40, Ledger 50, Trace 60, Report 70, Jobs 80.
   What is heavy (the workbench) is imported inside functions, so that the server starts at once.

2. One function makes the data, a pydantic model; the page and its twin under `/api` share it. Each route's `here` says
   by its type who may call it: Custodian, Analyst (and custodian), Auditor (and custodian), Anyone. The app refuses to
   start with a route that does not say.

       class ScoreView(BaseModel): ...

       def view(here: Here, name: str) -> ScoreView:
           here.study(name)                      # 404 where there is none; the navigation leads to it from now on
           job = here.job("score_source", name)  # the job of `?job=…`, else the latest of that function
           return ScoreView(study=name, job=job, result=here.result(job))

       @router.get("/studies/{name}/score")
       def page(here: Analyst, name: str) -> Response:
           return here.page("score.html", view=view(here, name))

       @router.get("/api/studies/{name}/score")
       def score(here: Analyst, name: str) -> ScoreView:
           return view(here, name)

3. Long work is a job: a function at the top of a module, of the workspace and of plain values, that calls the workbench
   and returns a dict, or `Outcome(dict, {title: Altair chart})`. It runs in a process of its own. A VeilmarkError is
   shown in its own words, VeilmarkWarnings as notes, steps of `veilmark.progress` as they go.

       @router.post("/api/studies/{name}/score", status_code=202)
       def start(here: Analyst, name: str, asked: Form) -> Job:
           here.study(name)
           given = {"study": name, **asked.model_dump()}
           return here.start(score_source, f"Score {name}", given, name, f"/studies/{quote(name)}/score")

       @router.post("/studies/{name}/score")
       def start_by_form(here: Analyst, name: str) -> Response:
           return here.watch(start(here, name, Form(x=here.text("x"))))    # here.text, here.file, here.form

       def score_source(workspace: Workspace, study: str, x: str) -> Outcome: ...

   Only custodian and analyst see a job and its result, unless `roles=("custodian",)` is given to `here.start`: do so
   where decoys, keys or recipients' copies show in it. Work that takes no time needs no job: do it, then
   `return here.go(url, "It is saved.")`. Errors of the workbench may simply be raised: they become a page, or JSON.

4. `templates/score.html` extends base.html, with `{% block title %}` and `{% block main %}`. It knows `ui` (macros.html:
   csrf, field, choice, tick, table, notice, figure, job, notes, charts, study_tabs), `csrf`, `session`, `path`,
   `current` (the study at hand). A form that posts starts with `{{ ui.csrf(csrf) }}`. `{{ ui.job(view.job, csrf) }}` shows a
   job that is not done, and loads the page again when it is; `{{ ui.charts(view.job) }}` its charts.
   Pages work without scripts where they can. A script is a module in static/ that the template loads in
   `{% block head %}`; it may import `post` and `get` of fetch.js and `embed` of charts.js (Vega-Lite, interactive).
   Inline scripts and styles are refused by the policy. Colours, spacing and classes: static/style.css.

5. Files: `here.workspace.table(path)` for a table that a request names (never a recipient's copy), `output(path)` for one
   that was made here, `new_output("anonymized", name, ".csv")` for a new one (`releases`: recipients' copies; `reports`),
   and `store("data", file.filename, file.file)` for an upload. `/download/{path}` serves outputs: of `releases` to the
   custodian only. `workspace.ledger` and `workspace.key` are the ledger and its key.
   `here.did("traced a leak", study)` says what the audit log tells of a request that changes something.

6. Tests: tests/web/test_web_score.py with the fixtures of its conftest.py (`custodian`, `analyst`, `auditor`: clients that
   are in, on a workspace with the study `people`) and `wait(client, job)` of web.helpers;
   tests/browser/test_browser_score.py with `page` (at both widths; fails on console errors), `server`, and `shot("score")`,
   which keeps a picture under build/screenshots/ and checks labels, headings, contrast and width. Look at the pictures.
   Access by role, tokens, headers and the API's schema are tested for all routes by themselves. Names of test files are
   unique in all of tests/.
"""
