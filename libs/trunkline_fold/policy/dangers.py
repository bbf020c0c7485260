"""Classes of danger: what commands and paths belong to each. Read widely, so only rules that deny or ask may name them."""

import posixpath
import re
from typing import Final

import msgspec

from trunkline_fold.policy import apart, shell
from trunkline_fold.policy.rules import Danger
from trunkline_wire.blocks import ToolKind


class Class(msgspec.Struct, frozen=True, kw_only=True):
    """`commands` are globs on the parts of a command, `paths` path globs."""

    commands: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    kinds: tuple[ToolKind, ...] = ()


_FETCHERS: Final = frozenset({"curl", "wget", "fetch", "http", "aria2c"})
_INTERPRETERS: Final = frozenset(
    {"sh", "bash", "zsh", "dash", "ksh", "fish", "python", "python3", "perl", "ruby", "node"}
)
_TESTS: Final = frozenset({"[", "[["})
_UNREADABLE: Final = re.compile(r"[$`*?\[]")

CLASSES: Final[dict[Danger, Class]] = {
    "destroys": Class(
        commands=(
            *("rm *", "rmdir *", "shred *", "unlink *", "truncate *", "dd *of=*", "mkfs*", "wipefs*", "fdisk *"),
            *("find *-delete*", "git clean *", "git reset *--hard*", "git checkout *-- *", "git restore *"),
            *("git branch *-D*", "git stash drop*", "git stash clear*", "git push *-f*", "git push * +*"),
            *("git *filter-branch*", "git reflog expire*", "docker *prune*", "docker * rm *", "docker volume rm*"),
            *("kubectl delete *", "terraform destroy*", "dropdb *", "*[Dd][Rr][Oo][Pp] [TtDdSs]*", "*TRUNCATE TABLE*"),
        ),
        kinds=("delete",),
    ),
    "publishes": Class(
        commands=(
            *("git push*", "npm publish*", "pnpm publish*", "yarn publish*", "yarn npm publish*", "twine upload*"),
            *("uv publish*", "poetry publish*", "cargo publish*", "gem push*", "docker push*", "podman push*"),
            *("docker buildx *--push*", "helm push*", "gh release *", "gh pr *", "gh repo *", "kubectl apply*"),
            *("terraform apply*", "aws s3 *", "gsutil *", "*fly deploy*", "vercel*", "netlify deploy*"),
        ),
    ),
    "privileged": Class(
        commands=(
            *(
                "sudo*",
                "su",
                "su *",
                "doas *",
                "pkexec *",
                "chmod *+s*",
                "chmod *777*",
                "chown *",
                "chgrp *",
                "setcap *",
            ),
            *(
                "useradd *",
                "usermod *",
                "userdel *",
                "passwd*",
                "visudo*",
                "mount *",
                "umount *",
                "insmod *",
                "modprobe *",
            ),
            *("systemctl *", "service *", "launchctl *", "shutdown*", "reboot*", "halt*", "poweroff*", "crontab *"),
            *(
                "iptables*",
                "ip6tables*",
                "nft *",
                "ufw *",
                "sysctl *",
                "nsenter *",
                "chroot *",
                "docker run *--privileged*",
            ),
        ),
        paths=("/etc/**", "/boot/**", "/sys/**", "/dev/sd*", "/dev/nvme*", "/var/run/docker.sock"),
    ),
    "network": Class(
        commands=(
            *("curl *", "wget *", "nc *", "ncat *", "netcat *", "socat *", "telnet *", "ssh *", "scp *", "sftp *"),
            *("rsync *", "ftp *", "nmap *", "aria2c *", "*/dev/tcp/*", "*/dev/udp/*"),
        ),
        kinds=("fetch",),
    ),
    "downloads": Class(),  # see `is_downloaded_and_run`
    "installs": Class(
        commands=(
            *(
                "pip install*",
                "pip3 install*",
                "python* -m pip install*",
                "uv pip install*",
                "uv add*",
                "pipx *",
                "uvx *",
            ),
            *(
                "npm install*",
                "npm i",
                "npm i *",
                "npm ci*",
                "npx *",
                "pnpm add*",
                "pnpm install*",
                "pnpm dlx*",
                "yarn add*",
            ),
            *("bun add*", "bunx *", "cargo install*", "go install*", "gem install*", "brew install*", "apt *install*"),
            *("apt-get *install*", "dnf *install*", "yum *install*", "apk add*", "pacman -S*"),
        ),
    ),
    "secrets": Class(
        commands=(
            "env",
            "printenv*",
            "export -p*",
            "gh auth token*",
            "aws configure get*",
            "pass show*",
            "security find-*",
        ),
        paths=(
            *("~/.ssh/**", "~/.gnupg/**", "~/.aws/**", "~/.azure/**", "~/.kube/**", "~/.config/gcloud/**"),
            *("~/.config/gh/**", "~/.docker/config.json", "~/.netrc", "~/.npmrc", "~/.pypirc", "~/.git-credentials"),
            *(
                "~/.password-store/**",
                ".env",
                ".env.*",
                "*.pem",
                "*.key",
                "*.p12",
                "id_rsa*",
                "id_ed25519*",
                "id_ecdsa*",
            ),
            *("/etc/shadow", "/etc/gshadow", "/proc/*/environ", "/run/secrets/**", "credentials.json"),
        ),
    ),
    "obscured": Class(
        commands=(
            *(
                "eval *",
                "base64 *-d*",
                "base64 *-D*",
                "xxd *-r*",
                "openssl enc *",
                "python* -c *",
                "perl -*e*",
                "ruby -e *",
            ),
            *("node -e *", "node --eval*", "php -r *", "awk *system(*", "source <*", "* <(*"),
        ),
    ),
}


def is_downloaded_and_run(parts: list[str]) -> bool:
    """Whether a command holds both a download and an interpreter that could run it."""
    programs = {posixpath.basename(part.split(" ", 1)[0]) for part in parts}
    return bool(programs & _FETCHERS) and bool(programs & _INTERPRETERS)


def is_obscured(parts: list[str]) -> bool:
    """Whether the program of a part is not to be read: a variable, a substitution, a glob."""
    programs = {part.split(" ", 1)[0] for part in parts} - _TESTS
    return any(_UNREADABLE.search(program) is not None and not shell.is_assignment(program) for program in programs)


def mentions(danger: Danger, parts: list[str]) -> bool:
    """Whether the parts of a command are of a class."""
    if danger == "downloads" and is_downloaded_and_run(parts):
        return True
    if danger == "obscured" and is_obscured(parts):
        return True
    return any(apart.mentioned(pattern, parts) for pattern in CLASSES[danger].commands)
