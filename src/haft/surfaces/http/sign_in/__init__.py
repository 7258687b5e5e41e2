"""Signing in: with a token, with the link that a server prints, and with an identity provider."""

from haft.surfaces.http.sign_in.authenticator import SignIn
from haft.surfaces.http.sign_in.routes import sign_in_routes as routes
from haft.surfaces.http.sign_in.settings import sign_in_for

__all__ = ["SignIn", "routes", "sign_in_for"]
