"""The overlay engine: a call works above the workspace, and what it changed is what lies in its layer.

It costs as much as was changed, whatever the size of the workspace; a call that changes nothing costs two directories.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Mapping, Sequence

from haft.changes.committing.area import identity
from haft.changes.committing.entry import UNREADABLE
from haft.changes.committing.manifest import Manifest
from haft.changes.committing.places import Tree
from haft.changes.engines import top
from haft.changes.engines.ending import EndsByItself
from haft.changes.engines.layer import Capture, Captured, TooDeep, read_large, take_stamp
from haft.changes.engines.layer_copy import part
from haft.changes.engines.scope import Scope, stopped_within
from haft.changes.transactions import Fate, Owner, Settled, Transactions
from haft.contracts import Changes, Conflict, HaftError, Layer, LimitExceeded, StorageFailed, ToolFailed
from haft.files import shown


def layer_options() -> str:
    """What the mount is told. An ordinary user keeps marks in attributes of their own; only root's overlay can rename
    directories that lie below. Nothing of it need survive power loss: the commit sees to that."""
    if os.geteuid() == 0:
        return "redirect_dir=on,index=off,metacopy=off,volatile"
    return "userxattr,volatile"


class OverlayTransaction(EndsByItself):
    """One call above the workspace."""

    workspace = None
    lock = None

    def __init__(
        self, transactions: Transactions, owner: Owner, above: Scope | None = None, *, makes_calls: bool = False
    ) -> None:
        """`above` is the scope of the call that makes this one, where that works above a layer too. With `makes_calls`
        this one may make calls itself."""
        self._above = above
        self._transactions = transactions
        self._owner = owner
        name = f"{owner.run}.layer"
        self._place = os.path.join(transactions.live, name)
        self._upper = os.path.join(self._place, "upper")
        os.mkdir(self._place, 0o700)
        os.mkdir(self._upper, 0o700)
        root = os.lstat(transactions.workspace)
        self._root = root.st_dev, root.st_ino
        mine = os.stat(self._upper)
        if (root.st_uid, root.st_gid) != (mine.st_uid, mine.st_gid) and os.geteuid() == 0:
            os.chown(self._upper, root.st_uid, root.st_gid)
        os.chmod(self._upper, stat.S_IMODE(root.st_mode))
        lowers = () if above is None else above.finished(self._place, name)
        self._scope = Scope(transactions, owner.run, self._upper, lowers)
        self.scope = self._scope if makes_calls else None
        self._top = top.state_of(self._upper)
        self._began = time.time()
        self._stamp = take_stamp(self._place)
        view = self._scope.shown_by if makes_calls else None
        self.layer = Layer(name, layer_options(), (mine.st_dev, mine.st_ino), lowers, view=view)
        self._doubt: str | None = None

    def is_untouched(self) -> bool:
        """Whether nothing at all was written: most calls only look."""
        with os.scandir(self._upper) as found:
            return next(found, None) is None

    def pause(self, spared: Sequence[str]) -> HaftError | None:
        """The call makes another one."""
        return None

    def resume(self) -> None:
        """The other one is over."""

    def drop(self) -> None:
        """Throw the layer away."""
        self._transactions.sweep(self._place)

    def finish(
        self,
        fate: Fate,
        *,
        spared: Sequence[str] = (),
        why: str | None = None,
        stopped: Callable[[], bool],
        doubt: str | None = None,
        is_held: Callable[[], bool] = lambda: False,
    ) -> Settled:
        """Look at what changed, and see it to its end. `is_held` says whether someone may still have something of the
        layer open, who could change it after it was looked at: then a copy of it is looked at and committed."""
        self._scope.close()
        doubts = [doubt, None if top.state_of(self._upper) == self._top else top.LAYERED]
        self._doubt = "; ".join(filter(None, doubts)) or None
        if self.is_untouched():
            self._scope.drop()
            self.drop()
            return Settled(Changes("overlay", complete=self._doubt is None, reason=self._doubt))
        transactions = self._transactions
        try:
            if fate == "discard":
                changes = self._manifest(self._captured(digests=False)).changes("discarded")
                self._scope.drop()
                return Settled(changes)
            if is_held():
                part(self._place)
            if self._above is not None:
                return self._within(self._above, fate, spared)
            most = transactions.limits.max_written_bytes
            with Tree(self._upper, forced=True) as upper:
                known = read_large(upper, most, stopped)
            with transactions.locked(stopped):
                if identity(transactions.workspace) != self._root:
                    return self._elsewhere()
                found = self._captured(known, stopped)
                if fate == "commit" and UNREADABLE in known.values():
                    what = "its new files are too large together to be looked at, holes included"
                    return transactions.settle(
                        self._owner,
                        self._manifest(found),
                        os.path.relpath(self._upper, transactions.area.path),
                        "hold",
                        why=what,
                        error=LimitExceeded("max_written_bytes", most, what),
                        conflicts=found.conflicts,
                    )
                return transactions.settle(
                    self._owner,
                    self._manifest(found),
                    os.path.relpath(self._upper, transactions.area.path),
                    fate,
                    conflicts=found.conflicts,
                    spared=spared,
                    passed_over=self._scope.judged_already(found.entries),
                    why=why,
                    stopped=stopped,
                )
        except (OSError, StorageFailed) as failure:
            return self._unread(failure)
        except TooDeep:
            error = LimitExceeded(
                "max_changed_files",
                transactions.limits.max_changed_files,
                "it made directories within directories without end",
            )
            return Settled(Changes("overlay", complete=False, reason=error.message, state="discarded"), error)
        finally:
            if not transactions.is_left(self._owner.run):
                self.drop()

    def _within(self, above: Scope, fate: Fate, spared: Sequence[str]) -> Settled:
        """Bring what it changed into the layer of the call that made it."""
        found = self._captured()
        manifest = self._manifest(found)
        if fate == "hold":
            self._scope.drop()
            return stopped_within(manifest)
        judged = self._scope.judged_already(found.entries)
        settled = above.take_in(self._owner, manifest, self._upper, found.conflicts, spared, judged)
        if settled.changes.state == "held":
            self._scope.pass_on(above)
        else:
            self._scope.drop()
        return settled

    def _unread(self, failure: Exception) -> Settled:
        error = ToolFailed(f"its changes could not be read, and are not in the workspace: {failure}")
        return Settled(Changes("overlay", complete=False, reason=error.message, state="discarded"), error)

    def _elsewhere(self) -> Settled:
        error = Conflict("the workspace was replaced by another one while the call ran: its changes were thrown away")
        return Settled(Changes("overlay", complete=False, reason=error.message, state="discarded"), error)

    def _captured(
        self,
        known: Mapping[int, str] | None = None,
        stopped: Callable[[], bool] | None = None,
        *,
        digests: bool = True,
    ) -> Captured:
        seen = self._transactions.tree() if self._above is None else Tree(self._above.path, forced=True)
        with seen as workspace, Tree(self._upper, forced=True) as upper:
            return Capture(workspace, upper, self._stamp, digests=digests, known=known, stopped=stopped).read()

    def _manifest(self, found: Captured) -> Manifest:
        contained = self._scope.contained()
        if self._above is None:
            self._scope.write_contained()
        reasons = [] if self._doubt is None else [self._doubt]
        if found.parted:
            named = ", ".join(map(shown, found.parted[:3])) + ("" if len(found.parted) <= 3 else ", …")
            reasons.append(f"{named}: had other names too (hard links), which keep the old content")
        return Manifest(
            self._owner.run,
            self._transactions.workspace,
            "overlay",
            tuple(found.entries),
            complete=self._doubt is None,
            reason="; ".join(reasons) or None,
            notes={"began": self._began, **({"contains": contained} if contained else {})},
        )
