"""What the generated data of `vally serve --demo` is about: evals, their stimuli, and what agents did."""

from __future__ import annotations

from dataclasses import dataclass

SMALL, LARGE = "gpt-5-mini", "claude-sonnet-4.5"
MODELS = (SMALL, LARGE)


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoStimulus:
    """A stimulus; `chance` is how likely a trial of each model passes, `diff` what a passing trial changed."""

    eval_name: str
    name: str
    area: str
    prompt: str
    answer: str
    file: str
    wanted: str
    diff: str
    command: str
    chance: tuple[float, float]

    @property
    def eval_file(self) -> str:
        """Where its eval lies."""
        return f"evals/{self.eval_name}/eval.yaml"


_PORT = """diff --git a/config/app.json b/config/app.json
index 5c3f1aa..9b0d2e1 100644
--- a/config/app.json
+++ b/config/app.json
@@ -1,7 +1,9 @@
 {
   "name": "billing",
-  "port": 3000,
+  "port": 8080,
+  "host": "127.0.0.1",
   "log": {
-    "level": "debug"
+    "level": "info",
+    "format": "json"
   }
 }
"""
_COMMENTS = """diff --git a/deploy/values.yaml b/deploy/values.yaml
index 77aa011..0e9d1b5 100644
--- a/deploy/values.yaml
+++ b/deploy/values.yaml
@@ -3,8 +3,9 @@ service:
   # Kept at two for the health checks of the load balancer.
-  replicas: 2
+  replicas: 4
   image:
     name: registry.example/billing
     # The tag is set by the release job.
     tag: latest
+  strategy: rolling
 resources:
   cpu: 500m
"""
_OFF_BY_ONE = '''diff --git a/src/paging.py b/src/paging.py
index 2b1c8de..f4410a7 100644
--- a/src/paging.py
+++ b/src/paging.py
@@ -8,15 +8,18 @@ class Page:

     def slice(self, items: list[str]) -> list[str]:
-        """Items of this page."""
-        start = self.number * self.size
-        return items[start : start + self.size - 1]
+        """Items of this page; the first page has number 1."""
+        start = (self.number - 1) * self.size
+        return items[start : start + self.size]

     def count(self, items: list[str]) -> int:
-        return len(items) // self.size
+        # The last page may be shorter than the others.
+        return -(-len(items) // self.size)


 def first(items: list[str], size: int = 20) -> Page:
-    return Page(0, size)
+    return Page(1, size)
diff --git a/tests/test_paging.py b/tests/test_paging.py
new file mode 100644
index 0000000..5a6c0d2
--- /dev/null
+++ b/tests/test_paging.py
@@ -0,0 +1,9 @@
+from paging import Page
+
+
+def test_last_page_is_shorter() -> None:
+    assert Page(2, 2).slice(["a", "b", "c"]) == ["c"]
+
+
+def test_count_rounds_up() -> None:
+    assert Page(1, 2).count(["a", "b", "c"]) == 2
'''
_RACE = """diff --git a/internal/cache/cache.go b/internal/cache/cache.go
index 19b3c02..c07d1e4 100644
--- a/internal/cache/cache.go
+++ b/internal/cache/cache.go
@@ -14,12 +14,16 @@ type Cache struct {
 }

 func (c *Cache) Get(key string, load func() (string, error)) (string, error) {
-\tif value, ok := c.values[key]; ok {
-\t\treturn value, nil
+\tc.mu.Lock()
+\tdefer c.mu.Unlock()
+\tif value, found := c.values[key]; found {
+\t\treturn value, nil // still fresh
 \t}
 \tvalue, err := load()
 \tif err != nil {
 \t\treturn "", err
 \t}
 \tc.values[key] = value
 \treturn value, nil
 }
"""
_SLUG = """diff --git a/web/src/slug.ts b/web/src/slug.ts
index 8c1e0b7..41dd9f3 100644
--- a/web/src/slug.ts
+++ b/web/src/slug.ts
@@ -1,5 +1,9 @@
+const MARKS = /[\\u0300-\\u036f]/g;
+
 export function slug(title: string): string {
   return title
+    .normalize("NFKD")
+    .replace(MARKS, "")
     .toLowerCase()
-    .replace(/[^a-z]+/g, "-");
+    .replace(/[^a-z0-9]+/g, "-")
+    .replace(/^-+|-+$/g, "");
 }
"""
_CHANGELOG = """diff --git a/CHANGELOG.md b/CHANGELOG.md
index 30ad5e1..b7f2c90 100644
--- a/CHANGELOG.md
+++ b/CHANGELOG.md
@@ -2,5 +2,8 @@

 ## Unreleased

+- Pages are counted from 1, and the last one is no longer cut short.
+- Slugs keep digits and drop accents.
+
 ## 2.3.0

"""
_EXAMPLE = """diff --git a/docs/old-client.md b/docs/client.md
similarity index 71%
rename from docs/old-client.md
rename to docs/client.md
index a01c7d2..66be0f1 100644
--- a/docs/old-client.md
+++ b/docs/client.md
@@ -1,6 +1,10 @@
 # The client

-Call `connect()` and hope.
+```python
+with Client(timeout=5) as client:
+    for invoice in client.invoices(status="open"):
+        print(invoice.number)
+```

 ## Errors

"""


STIMULI = (
    DemoStimulus(
        eval_name="config-editing",
        name="writes-json",
        area="config",
        chance=(0.95, 1.0),
        prompt="Set the port of the billing service to 8080 and log in JSON at level info. Leave the rest alone.",
        answer="I set `port` to 8080 and the log level to info with JSON output in `config/app.json`.",
        file="config/app.json",
        wanted="8080",
        diff=_PORT,
        command="python -m json.tool config/app.json",
    ),
    DemoStimulus(
        eval_name="config-editing",
        name="keeps-comments",
        area="config",
        chance=(0.55, 0.92),
        prompt="Scale the service to four replicas with a rolling update. The comments in the file must stay.",
        answer="The service now has four replicas and is updated step by step; all comments are still there.",
        file="deploy/values.yaml",
        wanted="replicas: 4",
        diff=_COMMENTS,
        command="grep -c '#' deploy/values.yaml",
    ),
    DemoStimulus(
        eval_name="bug-fixing",
        name="off-by-one",
        area="bugs",
        chance=(0.9, 1.0),
        prompt="Users report that the last item of each page is missing. Find out why, mend it and add a test.",
        answer="`Page.slice` cut one item too many and pages were counted from 0. I mended both and added two tests.",
        file="src/paging.py",
        wanted="self.number - 1",
        diff=_OFF_BY_ONE,
        command="python -m pytest -q tests/test_paging.py",
    ),
    DemoStimulus(
        eval_name="bug-fixing",
        name="race-in-cache",
        area="bugs",
        chance=(0.25, 0.65),
        prompt="`go test -race ./internal/cache` fails now and then. Make the cache safe for several goroutines.",
        answer="The map was read and written without a lock. `Get` now holds the mutex of the cache.",
        file="internal/cache/cache.go",
        wanted="c.mu.Lock()",
        diff=_RACE,
        command="go test -race ./internal/cache",
    ),
    DemoStimulus(
        eval_name="bug-fixing",
        name="unicode-slug",
        area="bugs",
        chance=(0.6, 0.85),
        prompt="Titles such as “Ångström 2” become `-ngstr-m-`. Make slugs keep digits and drop accents.",
        answer="Slugs are normalised first, so accents fall away and digits stay.",
        file="web/src/slug.ts",
        wanted="normalize",
        diff=_SLUG,
        command="npm test --silent -- slug",
    ),
    DemoStimulus(
        eval_name="docs-writing",
        name="changelog-entry",
        area="docs",
        chance=(0.98, 0.98),
        prompt="Write the changelog entries for the last two fixes, in the manner of the entries that are there.",
        answer="I added two entries under Unreleased.",
        file="CHANGELOG.md",
        wanted="Unreleased",
        diff=_CHANGELOG,
        command="git log --oneline -5",
    ),
    DemoStimulus(
        eval_name="docs-writing",
        name="api-example",
        area="docs",
        chance=(0.7, 0.9),
        prompt="Rename the page of the client to docs/client.md and replace its first sentence by a working example.",
        answer="The page is now `docs/client.md` and begins with an example that lists open invoices.",
        file="docs/client.md",
        wanted="client.invoices",
        diff=_EXAMPLE,
        command="python docs/check_examples.py docs/client.md",
    ),
)
