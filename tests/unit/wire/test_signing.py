"""The bytes that a device signs, against openssl, in the words of the definition, and as the page's JavaScript makes them."""

import itertools
import json
import shutil
import subprocess
from importlib import resources
from typing import Any

import pytest

from trunkline_wire import Answer, TrunklineError
from trunkline_wire.signing import answer_mac, signed_bytes

ASK = "ask_00112233445566778899aabbccddeeff"
ID = "cmd_ffeeddccbbaa99887766554433221100"
TIME = "2026-11-27T21:20:10Z"
NONCE = "000102030405060708090a0b0c0d0e0f"
KEY = bytes(range(32))
CHOICE = {"option": "yes", "updated_input": {"command": "ls /tmp/ö", "b": [1, 0.5]}}

# printf '{}' | openssl dgst -sha256
NOTHING = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
# printf '{"option":"yes","updated_input":{"b":[1,0.5],"command":"ls /tmp/ö"}}' | openssl dgst -sha256
CHOSEN = "85d88ede66bbda4fcabdcf29ee8e59328df9ec55a63c9864ecd0962c52fa553c"
# printf 'trunkline-answer-2\ncmd_ff…\nask_00…\nallow\n…\n<CHOSEN>' | openssl dgst -sha256 -mac HMAC -macopt hexkey:000102…1f
MAC = "f8d15568f9a556405447146a4851a9bb1b8cad72870917be5ce772933d992889"


def answer(**fields: Any) -> Answer:
    about: dict[str, Any] = {"id": ID, "ask": ASK, "behaviour": "allow", **fields}
    return Answer(session="ses_" + "0" * 32, time=TIME, **about)


def test_the_bytes_are_seven_lines() -> None:
    head = f"trunkline-answer-2\n{ID}\n{ASK}\nallow\n2026-11-27T21:20:10Z\n{NONCE}\n"
    assert signed_bytes(answer(), TIME, NONCE).decode() == head + NOTHING
    assert signed_bytes(answer(**CHOICE), TIME, NONCE).decode() == head + CHOSEN


def test_a_known_answer() -> None:
    assert answer_mac(KEY, answer(**CHOICE), TIME, NONCE) == MAC


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")
def test_the_page_signs_the_same() -> None:
    page = resources.files("trunkline_gateway").joinpath("static", "signing.js").read_text()
    given = json.dumps({"id": ID, "ask": ASK, "behaviour": "allow", "message": None, "interrupt": False, **CHOICE})
    program = f"""{page}
    (async () => {{
      const hmac = {{ name: "HMAC", hash: "SHA-256" }};
      const key = await crypto.subtle.importKey("raw", new Uint8Array({list(KEY)}), hmac, false, ["sign"]);
      console.log(await answerMac(key, {given}, "{TIME}", "{NONCE}"), /^cmd_[0-9a-f]{{32}}$/.test(newId()));
    }})();"""
    done = subprocess.run(["node", "-e", program], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.split() == [MAC, "true"]


@pytest.mark.parametrize(
    ("fields", "time", "nonce", "code"),
    [
        ({"ask": f"{ASK}\n"}, TIME, NONCE, "bad_id"),
        ({"ask": "ses_00112233445566778899aabbccddeeff"}, TIME, NONCE, "bad_id"),
        ({"id": f"{ID}\n"}, TIME, NONCE, "bad_id"),
        ({"id": ASK}, TIME, NONCE, "bad_id"),
        ({"behaviour": "allow\ndeny"}, TIME, NONCE, "bad_answer"),
        ({"behaviour": "maybe"}, TIME, NONCE, "bad_answer"),
        ({"updated_input": {"n": 2**53 + 1}}, TIME, NONCE, "bad_answer"),
        ({}, "2026-11-27T21:20:10+00:00", NONCE, "bad_answer"),
        ({}, f"{TIME}\n", NONCE, "bad_answer"),
        ({}, "٢٠٢٦-11-27T21:20:10Z", NONCE, "bad_answer"),
        ({}, TIME, NONCE.upper(), "bad_answer"),
        ({}, TIME, NONCE[:-2], "bad_answer"),
        ({}, TIME, f"{NONCE}\n", "bad_answer"),
    ],
)
def test_parts_of_another_form_are_not_signed(fields: dict[str, Any], time: str, nonce: str, code: str) -> None:
    with pytest.raises(TrunklineError) as refused:
        signed_bytes(answer(**fields), time, nonce)
    assert refused.value.code == code


def test_whatever_differs_has_another_signature() -> None:
    answers = [
        answer(),
        answer(ask=ASK.replace("0011", "1100")),
        answer(id=ID.replace("ffee", "eeff")),
        answer(behaviour="deny"),
        answer(behaviour="answered"),
        *(answer(option=option) for option in ("", "yes", "always")),
        *(answer(updated_input=value) for value in ({}, {"command": "ls"}, {"command": "rm"}, {"command": None}, "{}")),
        *(answer(rule_updates=value) for value in ({}, [], [{}])),
        *(answer(answers=value) for value in ({}, {"q": "yes"}, {"q": ["yes"]})),
        *(answer(message=value) for value in ("", "no")),
        answer(interrupt=True),
    ]
    times = (TIME, "2026-11-27T21:20:11Z", "2026-11-27T21:20:10.0Z")
    nonces = (NONCE, NONCE[::-1])
    macs = {answer_mac(KEY, *each) for each in itertools.product(answers, times, nonces)}
    assert len(macs) == len(answers) * len(times) * len(nonces)
    assert answer_mac(bytes(32), answer(), TIME, NONCE) not in macs
