"""Kinds of faults, and the waits that servers ask for."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from xpe.models._api_faults import fault_of_status, masked, seconds_to_wait

NOW = datetime(2025, 1, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "text", "seconds"),
    [
        ({"retry-after": "7"}, "", 7.0),
        ({"retry-after": "0.5"}, "", 0.5),
        ({"retry-after": "-3"}, "", 0.0),
        ({"retry-after": "Wed, 01 Jan 2025 12:01:30 GMT"}, "", 90.0),
        ({"retry-after": "Wed, 01 Jan 2025 11:00:00 GMT"}, "", 0.0),
        ({"retry-after": "Wed, 01 Jan 2025 12:00:05 -0000"}, "", 5.0),
        ({"retry-after": "soon"}, "", None),
        ({"retry-after-ms": "250", "retry-after": "1"}, "", 0.25),
        ({}, "RESOURCE_EXHAUSTED [{'@type': 'x.RetryInfo', 'retryDelay': '34s'}]", 34.0),
        ({}, "busy", None),
    ],
)
def test_reads_the_wait_in_every_form(headers, text, seconds):
    """Seconds, a date, milliseconds, or a field of the body."""
    assert seconds_to_wait(headers, text, NOW) == seconds


@pytest.mark.parametrize(
    ("status", "said", "kind"),
    [
        (400, "This model's maximum context length is 4096 tokens", "context"),
        (400, "The input token count (200000) exceeds the maximum number allowed", "context"),
        (400, "prompt is too long: 9 tokens > 8", "context"),
        (413, "", "context"),
        (400, "blocked by content_filter", "refused"),
        (400, "unknown field 'foo'", "bad_request"),
        (401, "no", "auth"),
        (403, "no", "auth"),
        (404, "no", "not_found"),
        (408, "", "timeout"),
        (429, "", "rate_limit"),
        (500, "", "server"),
        (503, "", "server"),
        (529, "", "server"),
    ],
)
def test_kinds_by_status_and_text(status, said, kind):
    """One word that says what went wrong; a body in any wrapping."""
    for body in ({"message": said}, {"error": {"message": said}}, [{"error": {"message": said}}]):
        assert fault_of_status(status, body, {}, NOW).kind == kind


def test_what_a_server_says_about_a_key_is_not_repeated():
    """It often quotes a part of it."""
    fault = fault_of_status(401, {"message": "Incorrect API key provided: sk-ab***yz"}, {}, NOW)
    assert "sk-ab" not in str(fault)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("HTTP 500: bad sk-0123456789abcdef, no", "HTTP 500: bad ***, no"),
        ("twice sk-0123456789abcdefsk-0123456789abcdef", "twice ******"),
        ("cut off at sk-0123456", "cut off at ***"),
        ("another, sk-0123-9999", "another, sk-0123-9999"),
        ("sk-01234 and sk-01", "*** and sk-01"),
        ("nothing", "nothing"),
    ],
)
def test_a_key_is_masked_even_where_the_text_was_cut(text, shown):
    """Eight characters of it are enough to be taken out."""
    assert masked(text, "sk-0123456789abcdef") == shown
    assert masked(text, None) == text
