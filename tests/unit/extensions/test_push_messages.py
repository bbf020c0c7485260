"""What a push service is given: the specification's example, the sender's key and token, and messages of one size."""

import base64
import stat
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from trunkline_extensions.push.app import PublicOnly, written
from trunkline_extensions.push.keys import SenderKey
from trunkline_extensions.push.message import CURVE, PADDED, packed, point, sealed, unpacked
from trunkline_extensions.sender import Delivery
from trunkline_wire import TrunklineError
from trunkline_wire.codec import decode_json

# RFC 8291, appendix A.
PLAIN = b"When I grow up, I want to be a watermelon"
SENDER = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"
P256DH = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
AUTH = "BTBZMqHH6r4Tts7J_aSIgg"
SALT = "DGv6ra1nlYgDCS1FRnbzlw"
BODY = (
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_y"
    "l95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
)

ASK = f"ask_{'0' * 32}"
SESSION = f"ses_{'1' * 32}"


def test_the_example_of_the_specification() -> None:
    sender = ec.derive_private_key(int.from_bytes(unpacked(SENDER)), CURVE)
    body = sealed(PLAIN, P256DH, AUTH, padded=len(PLAIN) + 1, salt=unpacked(SALT), sender=sender)
    assert packed(body) == BODY


def test_every_message_is_of_one_size_and_none_is_like_another() -> None:
    bodies = [sealed(content, P256DH, AUTH) for content in (b"", b"", b"x" * (PADDED - 1))]
    assert {len(body) for body in bodies} == {16 + 4 + 1 + 65 + PADDED + 16}
    assert len({body[86:] for body in bodies}) == 3
    with pytest.raises(ValueError, match="less than"):
        sealed(b"x" * PADDED, P256DH, AUTH)


@pytest.mark.parametrize("p256dh", ["", "B", packed(b"\x04" + b"\x01" * 64), packed(unpacked(P256DH)[:64])])
def test_keys_that_are_none(p256dh: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - its words are the library's
        sealed(PLAIN, p256dh, AUTH)


def test_the_senders_key_is_made_once_and_is_its_owners_alone(tmp_path: Path) -> None:
    first = SenderKey.kept(tmp_path, "mailto:ops@example.org")
    path = tmp_path / "keys" / "push.pem"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert SenderKey.kept(tmp_path, "mailto:ops@example.org").public == first.public
    path.chmod(0o640)
    with pytest.raises(TrunklineError, match="others can get at"):
        SenderKey.kept(tmp_path, "mailto:ops@example.org")
    path.chmod(0o600)
    path.write_text("no key, a secret")
    with pytest.raises(TrunklineError, match="holds no key") as error:
        SenderKey.kept(tmp_path, "mailto:ops@example.org")
    assert "secret" not in str(error.value)


def test_a_token_is_for_one_push_service_and_half_a_day() -> None:
    key = ec.generate_private_key(CURVE)
    header = SenderKey(key, "mailto:ops@example.org").authorization(
        "https://push.example.org:8443/send/x?y=z", now=1000.0
    )
    token, _, public = header.removeprefix("vapid t=").partition(", k=")
    assert unpacked(public) == point(key.public_key())
    options: Any = {"verify_exp": False}
    claims = jwt.decode(token, key.public_key(), ["ES256"], audience="https://push.example.org:8443", options=options)
    assert claims == {"aud": "https://push.example.org:8443", "exp": 1000 + 12 * 3600, "sub": "mailto:ops@example.org"}


def delivered(type: str, title: str, **data: Any) -> bytes:
    event = {"type": type, "session": SESSION, "data": {"ask": ASK, **data}}
    return written(Delivery(id="x", event=event, title=title))


def test_what_a_notification_says() -> None:
    where = {"body": "shop", "path": f"/session/{SESSION}", "ask": ASK}
    assert decode_json(delivered("permission.requested", "shop", name="Bash")) == {"title": "Allow Bash?", **where}
    assert decode_json(delivered("plan.proposed", "shop")) == {"title": "A plan waits", **where}
    assert decode_json(delivered("question.asked", "shop")) == {"title": "A question waits", **where}


@pytest.mark.parametrize("letter", ["x", '"', "\\", "\n", "\u202e", "\U0001f600"])
def test_a_notification_always_fits_and_has_nothing_that_hides(letter: str) -> None:
    content = delivered("permission.requested", letter * 5000, name=letter * 5000)
    assert len(content) < PADDED
    assert "\u202e" not in content.decode()
    assert base64.b64encode(sealed(content, P256DH, AUTH))


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
async def test_a_name_of_this_machine_has_no_address(host: str) -> None:
    with pytest.raises(OSError, match="not on the internet"):
        await PublicOnly().resolve(host, 443)
