import re
from pathlib import Path

import pytest

from luciole import limits
from luciole.errors import InvalidValue
from luciole.settings import Settings, load_settings, settings_page

PAGE = Path(__file__).parent.parent / "docs/settings.md"


def test_the_page_of_settings_is_what_the_code_says() -> None:
    """Write it anew with: python -c "from luciole.settings import settings_page as p; print(p(), end='')"."""
    assert PAGE.read_text(encoding="utf-8") == settings_page()


def test_an_argument_beats_the_environment_and_that_the_default() -> None:
    environ = {"LUCIOLE_BATCH_SIZE": "300", "LUCIOLE_LEASE_TTL": "4s", "HOME": "elsewhere"}
    settings = load_settings(environ, batch_size=400, slots=None)
    assert (settings.batch_size, settings.lease_ttl_us, settings.slots) == (400, 4 * limits.SECOND_US, Settings().slots)


@pytest.mark.parametrize(("text", "wanted_us"), [("750ms", 750_000), ("1.5", 1_500_000), ("2", 2_000_000)])
def test_a_duration_is_text_or_a_number_of_seconds(text: str, wanted_us: int) -> None:
    assert load_settings({"LUCIOLE_MAX_IDLE_WAKEUP": text}).max_idle_wakeup_us == wanted_us


@pytest.mark.parametrize(
    ("environ", "seen"),
    [
        ({"LUCIOLE_BATCHSIZE": "1"}, "LUCIOLE_BATCHSIZE: there is no such setting; did you mean batch_size"),
        ({"LUCIOLE_BATCH_SIZE": "many"}, "LUCIOLE_BATCH_SIZE: 'many' is no whole number"),
        ({"LUCIOLE_BATCH_SIZE": "0"}, "batch_size: 0 is outside 1 to"),
        ({"LUCIOLE_LEASE_TTL": "soon"}, "LUCIOLE_LEASE_TTL"),
        ({"LUCIOLE_LEASE_TTL": "1h"}, "lease_ttl: 1h is outside 500ms to 5m"),
        ({"LUCIOLE_LEASE_TTL": "1s"}, "lease_renew_pause: at least two renewals"),
        ({"LUCIOLE_HEARTBEAT_PAUSE": "2s"}, "heartbeat_pause: at least two heartbeats"),
        ({"LUCIOLE_LEASE_TTL": "5s"}, "session_ttl: three quarters of it must outlast lease_ttl + lease_margin"),
        ({"LUCIOLE_TLS_CERT": "cert.pem"}, "tls_key: a certificate and its key come together"),
    ],
)
def test_a_wrong_setting_is_refused_by_its_name(environ: dict[str, str], seen: str) -> None:
    with pytest.raises(InvalidValue, match=f"^{re.escape(seen)}"):
        load_settings(environ)


def test_an_argument_of_the_wrong_kind_is_refused() -> None:
    with pytest.raises(InvalidValue, match="dsn: a int is no text"):
        load_settings({}, dsn=3)
