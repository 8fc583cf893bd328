# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium for tests, spoken to through chromedriver's HTTP and JSON (W3C WebDriver)."""
import base64
import http.client
import json
import os
import re
import shutil
import subprocess
import tempfile
import time

ARGUMENTS = """--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
    --disable-component-update --disable-sync --disable-default-apps --disable-extensions --no-proxy-server
    --disable-dev-shm-usage --hide-scrollbars""".split()
PATIENCE = 60  # seconds: the machine may have much else to do
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # WebDriver's name for a reference


class Browser:
    """One browser with one tab and a profile of its own; use it in a with statement."""

    def __init__(self):
        self.home = tempfile.mkdtemp(prefix="browser.")
        self.session = None
        own = {**os.environ, "HOME": self.home, "TMPDIR": self.home}
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, cwd=self.home, env=own,
                                       stderr=subprocess.STDOUT, text=True)
        try:
            self.port = self._driver_port()
            options = {"args": ARGUMENTS + ["--user-data-dir=" + self.home + "/profile"],
                       "binary": shutil.which("chromium")}
            wanted = {"browserName": "chrome", "goog:chromeOptions": options,
                      "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
            answer = self._ask("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
            self.session = "/session/" + answer["sessionId"]
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.session:
            self._ask("DELETE", self.session)
        self.driver.terminate()
        self.driver.wait(PATIENCE)
        shutil.rmtree(self.home, ignore_errors=True)

    def _driver_port(self):
        for line in self.driver.stdout:
            found = re.search(r"started successfully on port (\d+)", line)
            if found:
                return int(found[1])
        raise RuntimeError("chromedriver did not start")

    def _ask(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=2 * PATIENCE)
        connection.request(method, path, None if body is None else json.dumps(body))
        value = json.loads(connection.getresponse().read())["value"]
        connection.close()
        if isinstance(value, dict) and "error" in value:
            raise RuntimeError("%s: %s" % (value["error"], value["message"].splitlines()[0]))
        return value

    def command(self, name, **parameters):
        """A command of the DevTools protocol."""
        return self._ask("POST", self.session + "/goog/cdp/execute", {"cmd": name, "params": parameters})

    def look(self, width, height, scheme, mobile=False):
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)
        self.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, url):
        self._ask("POST", self.session + "/url", {"url": url})

    def js(self, script, *arguments):
        """What the body of a function returns; `return await` is allowed."""
        return self._ask("POST", self.session + "/execute/sync",
                         {"script": "return (async (...args) => {%s})(...arguments)" % script, "args": list(arguments)})

    def wait(self, script, *arguments):
        """Waits until the script returns something true, and gives it; None after PATIENCE seconds."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            value = self.js(script, *arguments)
            if value:
                return value
            time.sleep(0.1)
        return None

    def element(self, selector):
        found = self._ask("POST", self.session + "/element", {"using": "css selector", "value": selector})
        return "%s/element/%s" % (self.session, found[ELEMENT])

    def click(self, selector):
        """A true click, in the middle of the element."""
        self._ask("POST", self.element(selector) + "/click", {})

    def keys(self, *keys):
        steps = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self._ask("POST", self.session + "/actions", {"actions": [{"type": "key", "id": "keys", "actions": steps}]})

    def picture(self, path):
        """The whole page as a PNG."""
        shot = self.command("Page.captureScreenshot", captureBeyondViewport=True)
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot["data"]))

    def complaints(self):
        """What the console said since the last time: errors and warnings."""
        log = self._ask("POST", self.session + "/se/log", {"type": "browser"})
        return [entry["message"] for entry in log if entry["level"] in ("SEVERE", "WARNING")]

    def requested(self):
        """The URLs that pages asked for since the last time."""
        log = self._ask("POST", self.session + "/se/log", {"type": "performance"})
        events = [json.loads(entry["message"])["message"] for entry in log]
        return [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
