"""What the tools beside this folder share."""


def initials(name: str) -> str:
    return "".join(word[0] for word in name.split())
