"""The action and the hook: their steps are read from their files and run in a repository made here."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
import unittest

import yaml

from tests.agents.common import ROOT, environment, program

GIT = ["git", "-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]


def launch(batch: int, length: int = 512) -> str:
    """A file of LLaMA-Factory."""
    return (
        "model_name_or_path: qwen2.5-0.5b\nstage: sft\nfinetuning_type: full\nbf16: true\n"
        f"cutoff_len: {length}\nper_device_train_batch_size: {batch}\n"
    )


class Repository:
    """A repository with two launch files, of which one is changed."""

    def __init__(self, folder: str) -> None:
        """Commits both, and changes the first."""
        os.makedirs(folder)
        self.folder = folder
        self.environment = {
            **environment(folder + "-home"),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
        }
        self.git("init", "--quiet", "--initial-branch=main")
        self.write("runs/a.yaml", launch(1))
        self.write("runs/b of two.yaml", launch(2))
        self.git("add", ".")
        self.git("commit", "--quiet", "-m", "runs")
        self.base = self.git("rev-parse", "HEAD").strip()
        self.write("runs/a.yaml", launch(4))

    def write(self, name: str, text: str) -> None:
        """Writes a file."""
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def git(self, *words: str, check: bool = True) -> str:
        """Runs git, and returns all that it prints."""
        done = subprocess.run(
            [*GIT, *words], cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False
        )
        if check and done.returncode:
            raise AssertionError(f"{words}: {done.stderr}")
        return done.stdout + done.stderr if not check else done.stdout


class Runner:
    """Runs the steps of a composite action, as far as this one needs it."""

    def __init__(self, repository: Repository, inputs: dict[str, str], event: str) -> None:
        """Takes the action's own defaults for what is not given."""
        with open(os.path.join(ROOT, "action.yml"), encoding="utf-8") as file:
            self.action = yaml.safe_load(file)
        defaults = {name: str(of.get("default", "")) for name, of in self.action["inputs"].items()}
        self.repository = repository
        self.values: dict[str, str] = {
            "github.event_name": event,
            "github.event.pull_request.base.sha": repository.base if event == "pull_request" else "",
            "github.event.pull_request.number": "7",
            "github.token": "a-token",
        }
        self.values |= {f"inputs.{name}": self.filled(text) for name, text in {**defaults, **inputs}.items()}
        self.scratch = os.path.join(repository.folder, ".git", "scratch")
        os.makedirs(self.scratch, exist_ok=True)

    def filled(self, text: str) -> str:
        """Expressions put in: a name, or the first of alternatives that is not empty."""

        def value(match: re.Match[str]) -> str:
            """The value of an expression."""
            words = [word.strip() for word in match[1].split("||")]
            known = [word[1:-1] if word.startswith("'") else self.values[word] for word in words]
            return next((word for word in known if word), "")

        return re.sub(r"\$\{\{(.*?)\}\}", value, text)

    def holds(self, condition: str) -> bool:
        """Whether a condition of comparisons, all of which count, is met."""
        for part in condition.split("&&"):
            name, compared, word = re.fullmatch(r"\s*([\w.-]+) (==|!=) '(.*)'\s*", part).groups()
            if (self.values[name] == word) != (compared == "=="):
                return False
        return True

    def run(self) -> tuple[int, list[str]]:
        """The exit code of the first step that fails, else 0, and the names of those that ran."""
        ran = []
        for step in self.action["runs"]["steps"]:
            if not self.holds(step.get("if", "inputs.gpu != ''")):
                continue
            ran.append(step["name"])
            output = os.path.join(self.scratch, "output")
            open(output, "w", encoding="utf-8").close()
            variables = {name: self.filled(text) for name, text in step.get("env", {}).items()}
            place = {
                "GITHUB_OUTPUT": output,
                "GITHUB_STEP_SUMMARY": self.scratch + "/summary",
                "RUNNER_TEMP": self.scratch,
            }
            done = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
                cwd=self.repository.folder,
                env={**self.repository.environment, **place, **variables},
                check=False,
            )
            with open(output, encoding="utf-8") as file:
                for line in file:
                    name, value = line.rstrip("\n").split("=", 1)
                    self.values[f"steps.{step['id']}.outputs.{name}"] = value
            if done.returncode:
                return done.returncode, ran
        return 0, ran


class ActionTest(unittest.TestCase):
    """The action in a repository."""

    def setUp(self) -> None:
        """A repository, and a `gh` that keeps what it is given."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.repository = Repository(os.path.join(folder.name, "repository"))
        tools = os.path.join(folder.name, "tools")
        os.makedirs(tools)
        self.said = os.path.join(folder.name, "said")
        with open(os.path.join(tools, "gh"), "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\necho "$@" > {self.said}\ncat "$7" >> {self.said}\n')
        os.chmod(os.path.join(tools, "gh"), 0o755)
        self.repository.environment["PATH"] = tools + os.pathsep + self.repository.environment["PATH"]

    def runner(self, event: str = "pull_request", **inputs: str) -> Runner:
        """A run with the program of the tests' build."""
        given = {"runs": "runs/*.yaml", "gpu": "H200", "program": program()} | inputs
        return Runner(self.repository, given, event)

    def test_a_pull_request_gets_the_difference_as_a_comment(self) -> None:
        """Both files are checked; the changed one says by how much, and a name with blanks is one file."""
        self.repository.git("commit", "--quiet", "-am", "more")
        runner = self.runner()
        code, ran = runner.run()
        self.assertEqual((code, ran[-2:]), (0, ["Comment on the pull request", "Verdict"]))
        with open(self.said, encoding="utf-8") as file:
            said = file.read()
        self.assertIn("pr comment 7 --edit-last --create-if-none --body-file", said)
        rows = [line for line in said.splitlines() if line.startswith("| `")]
        self.assertEqual(len(rows), 2, said)
        self.assertRegex(rows[0], r"`runs/a.yaml` \| fits \| [\d.]+ GiB \| [\d.]+ GiB \| \+[\d.]+ GiB \|")
        self.assertRegex(rows[1], r"`runs/b of two.yaml` \| fits \|")
        with open(runner.values["steps.check.outputs.sarif"], encoding="utf-8") as file:
            self.assertEqual(json.load(file)["version"], "2.1.0")

    def test_what_does_not_fit_fails_the_check_after_the_comment(self) -> None:
        """The exit code is that of the program, and a push has no comment."""
        runner = self.runner(budget="1", comment="true")
        code, ran = runner.run()
        self.assertEqual((code, ran[-1]), (3, "Verdict"))
        self.assertIn("Comment on the pull request", ran)
        code, ran = self.runner("push", budget="1").run()
        self.assertEqual(code, 3)
        self.assertNotIn("Fetch the base", ran)
        self.assertFalse(any("Comment" in name for name in ran))

    def test_patterns_that_match_nothing_are_refused(self) -> None:
        """A check of nothing must not pass, and a pattern is never run."""
        code, ran = self.runner(runs="none/*.yaml $(touch ran)").run()
        self.assertEqual((code, ran[-1]), (2, "Check the runs"))
        self.assertFalse(os.path.exists(os.path.join(self.repository.folder, "ran")))

    def test_the_hook_shows_the_difference_and_stops_a_commit_that_does_not_fit(self) -> None:
        """As pre-commit runs it: the entry, the user's arguments, the files."""
        with open(os.path.join(ROOT, ".pre-commit-hooks.yaml"), encoding="utf-8") as file:
            (hook,) = yaml.safe_load(file)
        path = os.path.join(self.repository.folder, ".git", "hooks", "pre-commit")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\nexec {hook['entry']} $ARGS runs/a.yaml\n")
        os.chmod(path, 0o755)
        self.repository.environment["ARGS"] = "--gpu H200 --budget 1"
        said = self.repository.git("commit", "-am", "more", check=False)
        self.assertIn("OVER BUDGET", said)
        self.assertEqual(self.repository.git("rev-parse", "HEAD").strip(), self.repository.base)
        self.repository.environment["ARGS"] = "--gpu H200"
        said = self.repository.git("commit", "-am", "more", check=False)
        self.assertRegex(said, r"FITS  runs/a.yaml[\s\S]*\+[\d.]+ GiB beside the base")
        self.assertNotEqual(self.repository.git("rev-parse", "HEAD").strip(), self.repository.base)


if __name__ == "__main__":
    unittest.main()
