"""Results as a JUnit XML file, which build servers read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from xml.etree.ElementTree import Element, ElementTree, SubElement, indent

from haft.testing.scenarios.report import failure as explained_failure
from haft.testing.scenarios.report import in_one_line, place
from haft.testing.scenarios.scenario import Result

_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_junit(path: str, results: Sequence[Result], seconds: float) -> None:
    """Write the results to a file."""
    failed = [each for each in results if each.mismatches]
    skipped = [each for each in results if each.skipped is not None]
    facts = {
        "name": "haft",
        "tests": str(len(results)),
        "failures": str(len(failed)),
        "errors": "0",
        "skipped": str(len(skipped)),
        "time": f"{seconds:.3f}",
    }
    suites = Element("testsuites", facts)
    suite = SubElement(suites, "testsuite", facts)
    for each in results:
        file, _colon, line = place(each).rpartition(":")
        case = SubElement(
            suite,
            "testcase",
            {"classname": _xml(file), "name": _xml(each.scenario.name), "file": _xml(file), "line": line},
        )
        case.set("time", f"{each.seconds:.3f}")
        if each.skipped is not None:
            SubElement(case, "skipped", {"message": _xml(each.skipped)})
        elif each.mismatches:
            first = in_one_line(each.mismatches[0])
            failure = SubElement(case, "failure", {"message": _xml(first), "type": "mismatch"})
            failure.text = _xml("\n".join(explained_failure(each)))
    indent(suites)
    ElementTree(suites).write(path, encoding="utf-8", xml_declaration=True)


def _xml(text: str) -> str:
    """A text without the characters that XML cannot have."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
