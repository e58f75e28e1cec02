"""Views of an `Evaluation`: JSON for programs, Markdown for pull requests, a page for people, lines for the terminal.

Each begins with the answer. Nothing here imports torch or reaches for the network.
"""

from graphmend_evaluation.reporting.files import as_json, write_reports
from graphmend_evaluation.reporting.markdown import markdown
from graphmend_evaluation.reporting.page import html
from graphmend_evaluation.reporting.terminal import terminal_lines

__all__ = ["as_json", "html", "markdown", "terminal_lines", "write_reports"]
