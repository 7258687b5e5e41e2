"""Programs that show facts about the machine, its time, its users and its processes."""

from __future__ import annotations

from typing import Final

from haft.policy.analysis.program import Invocation, Program
from haft.policy.analysis.programs.processes import PROCESSES
from haft.policy.analysis.programs.shared_checks import names_zone, only_among, word_set

_ENDLESS: Final = "runs endlessly"


def _date(invocation: Invocation) -> str | None:
    """Refuse a word that is not a format: `date` would set the clock to this word. Returns the reason, or None."""
    for each in invocation.operands:
        if each.paths is not None or not each.text.lstrip("'\"").startswith("+"):
            return f"`date {each.text}` sets the clock"
    values = (value or "" for name, value in invocation.options if name in ("-d", "--date"))
    return next((f"`{value}` may name a time zone file" for value in values if names_zone(value)), None)


def _free(invocation: Invocation) -> str | None:
    repeats = invocation.has("-s", "--seconds") and not invocation.has("-c", "--count")
    return f"`free -s` {_ENDLESS}" if repeats else None


SYSTEM: Final[dict[str, Program]] = {
    "date": Program(
        options="""-d=word --date=word --debug -I[=word] --iso-8601[=word] -R --rfc-email --rfc-822 --rfc-2822
            --rfc-3339=word -r=path --reference=path --resolution -u --utc --universal --help --version""",
        operands="words",
        harmful={
            **dict.fromkeys(("-s", "--set"), "sets the clock"),
            **dict.fromkeys(("-f", "--file"), "reads the dates of another file"),
        },
        check=_date,
    ),
    "cal": Program(
        options="""-1 --one -3 --three -n=word --months=word -S --span -s --sunday -m -M --monday -j --julian
            --reform=word --iso -y --year -Y --twelve -w --week[=word] -v --vertical --color[=word] -h --help -V
            --version""",
        operands="words",
        all_options_harmless=True,
    ),
    "uname": Program(
        options="""-a --all -s --kernel-name -n --nodename -r --kernel-release -v --kernel-version -m --machine
            -p --processor -i --hardware-platform -o --operating-system --help --version""",
        operands="none",
        all_options_harmless=True,
    ),
    "arch": Program(options="--help --version", operands="none", all_options_harmless=True),
    "hostname": Program(
        options="-I --all-ip-addresses -s --short -h --help -V --version",
        operands="none",
        harmful={
            **dict.fromkeys(("-F", "--file", "-b", "--boot"), "sets the name of the machine"),
            **dict.fromkeys(("-A", "--all-fqdns", "-f", "--fqdn", "--long", "-i", "--ip-address"), "uses the network"),
            **dict.fromkeys(("-a", "--alias", "-d", "--domain", "-y", "--yp", "--nis"), "uses the network"),
        },
    ),
    "whoami": Program(options="--help --version", operands="none", all_options_harmless=True),
    "logname": Program(options="--help --version", operands="none", all_options_harmless=True),
    "id": Program(
        options="-a -Z --context -g --group -G --groups -n --name -r --real -u --user -z --zero --help --version",
        operands="words",
        all_options_harmless=True,
    ),
    "groups": Program(options="--help --version", operands="words", all_options_harmless=True),
    "who": Program(
        options="""-a --all -b --boot -d --dead -H --heading -l --login -m -p --process -q --count -r --runlevel
            -s --short -t --time -T -w --mesg -u --users --message --writable --help --version""",
        operands="none",
        shows_host_data=True,
    ),
    "w": Program(
        options="-h --no-header -u --no-current -s --short -f --from -o --old-style -i --ip-addr --help -V --version",
        operands="none",
        shows_host_data=True,
    ),
    "users": Program(options="--help --version", operands="none", shows_host_data=True),
    "nproc": Program(options="--all --ignore=word --help --version", operands="none", all_options_harmless=True),
    "uptime": Program(
        options="-p --pretty -s --since -h --help -V --version", operands="none", all_options_harmless=True
    ),
    "free": Program(
        options="""
            -b --bytes --kilo --mega --giga --tera --peta -k --kibi -m --mebi -g --gibi --tebi --pebi -h --human
            --si -l --lohi -L --line -t --total -v --committed -s=word --seconds=word -c=number --count=number -w
            --wide --help -V --version
        """,
        operands="none",
        check=_free,
    ),
    **PROCESSES,
    "pgrep": Program(
        options="""
            -d=word --delimiter=word -l --list-name -a --list-full -v --inverse -w --lightweight -c --count -f
            --full -g=word --pgroup=word -G=word --group=word -i --ignore-case -n --newest -o --oldest -O=word
            --older=word -P=word --parent=word -s=word --session=word -t=word --terminal=word -u=word --euid=word
            -U=word --uid=word -x --exact -F=path --pidfile=path -r=word --runstates=word -A --ignore-ancestors -h
            --help -V --version
        """,
        operands="words",
        shows_host_data=True,
    ),
    "tty": Program(options="-s --silent --quiet --help --version", operands="none", all_options_harmless=True),
    "locale": Program(
        options="""-a --all-locales -m --charmaps -c --category-name -k --keyword-name -v --verbose -? --help -V
            --version""",
        operands="words",
    ),
    "getconf": Program(
        options="-a --help --version",
        operands="words",
        check=only_among(
            word_set("""
            ARG_MAX PATH_MAX NAME_MAX PAGESIZE PAGE_SIZE _NPROCESSORS_ONLN _NPROCESSORS_CONF LONG_BIT WORD_BIT CHAR_BIT
        OPEN_MAX CHILD_MAX HOST_NAME_MAX LINE_MAX _PHYS_PAGES _AVPHYS_PAGES GNU_LIBC_VERSION GNU_LIBPTHREAD_VERSION
        INT_MAX UINT_MAX LONG_MAX ULONG_MAX CLK_TCK PATH
            """),
            "is not known to be read-only",
        ),
    ),
    "lscpu": Program(
        options="""-a --all -b --online -B --bytes -C[=word] --caches[=word] -c --offline -J --json -e[=word]
            --extended[=word] -p[=word] --parse[=word] -x --hex -y --physical --output-all -h --help -V --version""",
        operands="none",
    ),
    "lsb_release": Program(
        options="-v --version -i --id -d --description -r --release -c --codename -a --all -s --short -h --help",
        operands="none",
        starts_others=True,
    ),
    "tput": Program(
        operands="words",
        check=only_among(
            word_set("cols lines colors bold dim rev sgr0 smul rmul smso rmso longname setaf setab 0 1 2 3 4 5 6 7 8"),
            "is not known to only print",
        ),
    ),
    "ulimit": Program(options="-a -c -d -f -l -m -n -s -t -u -v -S -H", operands="none", clusters=False),
}
