"""Takes secrets out of what an agent printed before it goes into an error text."""

import re
from collections.abc import Mapping
from typing import Final

_HIDDEN: Final = "[redacted]"
_SECRET_NAME: Final = re.compile(r"key|token|secret|passw|credential|cookie|auth", re.IGNORECASE)
_ASSIGNED: Final = re.compile(
    r"""(?ix)
    ( [\w-]* (?: api[_-]?key | token | secret | passw(?:or)?d | credential | cookie | authorization ) [\w-]* ["']? \s* [=:] \s* ["']? )
    ( (?: bearer | basic ) \s+ )?
    [^\s"',;&]+
    """
)
_SHAPED: Final = re.compile(
    r"""(?x)
    \b (?: sk | pk | rk ) - [\w-]{12,}                # model APIs
    | \b gh[pousr]_ \w{20,} | \b github_pat_ \w{20,}
    | \b xox[abprs] - [\w-]{10,}
    | \b AKIA [0-9A-Z]{16} \b
    | \b AIza [\w-]{30,}
    | \b eyJ [\w-]{8,} \. [\w-]{8,} \. [\w-]*         # JSON web tokens
    | (?i: \b bearer \s+ ) [\w.~+/=-]{8,}
    | (?<= :// ) [^\s/:@]+ : [^\s/@]+ (?= @ )         # passwords in URLs
    | -----BEGIN[ ][A-Z ]*PRIVATE[ ]KEY----- [\s\S]*? (?: -----END[ ][A-Z ]*PRIVATE[ ]KEY----- | \Z )
    """
)


def redact(text: str, environment: Mapping[str, str] | None = None) -> str:
    """`text` without what looks like a secret, and without the values of `environment`'s secret variables."""
    for name, value in (environment or {}).items():
        if len(value) >= 6 and _SECRET_NAME.search(name):
            text = text.replace(value, _HIDDEN)
    text = _SHAPED.sub(_HIDDEN, text)
    return _ASSIGNED.sub(rf"\g<1>{_HIDDEN}", text)
