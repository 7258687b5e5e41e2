"""Programs that show files byte by byte, compute checksums or encode files; and programs that inspect binaries."""

from __future__ import annotations

from typing import Final

from haft.lazy import regex
from haft.policy.analysis.program import Invocation, Program
from haft.policy.analysis.programs.shared_checks import UNKNOWN, known_words, no_response_files, word_set

_NAMES: Final = "reads the files that a list names"
_SOURCES: Final = "reads the files that the binary names"
_LOADS: Final = "loads a library"

_DIGEST: Final = Program(
    options="-b --binary --tag -t --text -z --zero --help --version",
    all_options_harmless=True,
    harmful={"-c": _NAMES, "--check": _NAMES},
)
_CODE: Final = Program(
    options="-d --decode -i --ignore-garbage -w=word --wrap=word --help --version", all_options_harmless=True
)
_HEXDUMP: Final = Program(
    options="""-b --one-byte-octal -X --one-byte-hex -c --one-byte-char -C --canonical -d --two-bytes-decimal
        -o --two-bytes-octal -x --two-bytes-hex -L[=word] --color[=word] -e=word --format=word -f=path
        --format-file=path -n=word --length=word -s=word --skip=word -v --no-squeezing -h --help -V --version""",
    all_options_harmless=True,
)

_XXD_BARE: Final = word_set("""
    -a -autoskip -b -bits -C -capitalize -d -E -EBCDIC -e -h -help -i -include -p -ps -postscript -plain -u -v
    -version
""")
_XXD_VALUED: Final = ("-c", "-g", "-l", "-n", "-o", "-s")
"""Options with a value. Some versions of `xxd` read the long forms of these options as a letter with an attached value,
and so read the next word, the value, as a file."""
_XXD_ATTACHED: Final = regex(r"-[cglos]\+?(0[xX])?[0-9a-fA-F]+")


def _xxd(invocation: Invocation) -> str | None:
    """Refuse a second operand, to which `xxd` writes. Options end at the first operand, so the second operand may begin
    with a dash. Returns the reason, or None."""
    words = known_words(invocation.operands)
    if words is None:
        return UNKNOWN
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] != "-":
        word = "-" + words[at].lstrip("-")
        if word in _XXD_VALUED:
            at += 1
        elif word in ("-r", "-revert"):
            return "`xxd -r` writes bytes back"
        elif word not in _XXD_BARE and not _XXD_ATTACHED.fullmatch(word):
            return f"haft does not know `xxd {words[at]}` to be read-only"
        at += 1
    return "the second operand of `xxd` is a file that it writes" if len(words) > at + 1 else None


BYTES: Final[dict[str, Program]] = {
    **dict.fromkeys(("md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum"), _DIGEST),
    "b2sum": Program(
        options="-b --binary -l=word --length=word --tag -t --text -z --zero --help --version",
        all_options_harmless=True,
        harmful=_DIGEST.harmful,
    ),
    "shasum": Program(
        options="-a=word --algorithm=word -b --binary -t --text -U --UNIVERSAL -0 --01 --tag -h --help -v --version",
        harmful=_DIGEST.harmful,
    ),
    "cksum": Program(
        options="""-a=word --algorithm=word --base64 --raw -l=word --length=word --tag --untagged -z --zero --debug
            --help --version""",
        all_options_harmless=True,
        harmful=_DIGEST.harmful,
    ),
    "sum": Program(options="-r -s --sysv --help --version", all_options_harmless=True),
    "base64": _CODE,
    "base32": _CODE,
    "basenc": Program(
        options="""--base64 --base64url --base32 --base32hex --base16 --base2msbf --base2lsbf --z85 -d --decode
            -i --ignore-garbage -w=word --wrap=word --help --version""",
        all_options_harmless=True,
    ),
    "od": Program(
        options="""-A=word --address-radix=word --endian=word -j=word --skip-bytes=word -N=word --read-bytes=word
            -S[=word] --strings[=word] -t=word --format=word -v --output-duplicates -w[=word] --width[=word]
            --traditional -a -b -c -d -f -i -l -o -s -x --help --version""",
        all_options_harmless=True,
    ),
    "hexdump": _HEXDUMP,
    "hd": _HEXDUMP,
    "xxd": Program(
        options=" ".join(
            (
                *sorted(_XXD_BARE),
                *(f"{name}=word" for name in _XXD_VALUED),
                "-c8 -c16 -c32 -g1 -g2 -g4 -l16 -l32 -l64 -l128",
            )
        ),
        harmful={"-r": "writes bytes back", "-revert": "writes bytes back"},
        check=_xxd,
        clusters=False,
        single_dash=True,
    ),
    "strings": Program(
        options="""-a --all -f --print-file-name -n=word --bytes=word -t=word --radix=word
            -w --include-all-whitespace -o -T=word --target=word -e=word --encoding=word --unicode=word -U=word
            -s=word --output-separator=word -h --help -v -V --version""",
        number_option=True,
        check=no_response_files,
    ),
    "nm": Program(
        options="""
            -a --debug-syms -j --just-symbols -A -o --print-file-name -B -C --demangle[=word] --no-demangle -D --dynamic
            --defined-only -U -e -f=word --format=word -g --extern-only -h --help -n -v
            --numeric-sort -p --no-sort -P --portability -r --reverse-sort -S --print-size -s --print-armap
            --size-sort --special-syms --synthetic -t=word --radix=word -u --undefined-only -V --version -W
            --no-weak
        """,
        harmful={"--plugin": _LOADS, "-l": _SOURCES, "--line-numbers": _SOURCES},
        check=no_response_files,
    ),
    "objdump": Program(
        options="""-a --archive-headers -f --file-headers -p --private-headers -P=word --private=word -h --headers
            --section-headers -d --disassemble[=word] -D --disassemble-all -s --full-contents
            -G --stabs
            -T --dynamic-syms -r --reloc -R --dynamic-reloc -v --version -H --help -b=word --target=word
            -m=word --architecture=word -j=word --section=word -M=word --disassembler-options=word -EB -EL
            --endian=word -F --file-offsets -C --demangle[=word] -w --wide -z
            --disassemble-zeroes --start-address=word --stop-address=word --no-addresses --no-show-raw-insn
            --show-raw-insn --insn-width=word --visualize-jumps[=word] --special-syms --adjust-vma=word""",
        harmful={
            "--plugin": _LOADS,
            **dict.fromkeys(("-S", "--source", "-l", "--line-numbers", "--inlines", "-g", "--debugging"), _SOURCES),
            **dict.fromkeys(("-e", "--debugging-tags", "-t", "--syms", "-x", "--all-headers"), _SOURCES),
        },
        check=no_response_files,
    ),
    "readelf": Program(
        options="""-a --all -h --file-header -l --program-headers --segments -S --section-headers --sections
            -g --section-groups -t --section-details -e --headers -s --syms --symbols --dyn-syms -C --demangle[=word]
            --no-demangle -n --notes -r --relocs -u --unwind -d --dynamic -V --version-info -A --arch-specific
            -c --archive-index -D --use-dynamic -x=word --hex-dump=word -p=word --string-dump=word -R=word
            --relocated-dump=word -z --decompress -I --histogram -W --wide -T --silent-truncation -H --help
            -v --version""",
        check=no_response_files,
    ),
    "size": Program(
        options="""-A -B -G --format=word -o -d -x --radix=word -t --totals --common --target=word -f -h --help -v -V
            --version""",
        check=no_response_files,
    ),
}
