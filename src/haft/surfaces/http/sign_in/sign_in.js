// The sign-in page: exchanges the token of a link, or one that is typed, for a cookie. The token of a link stands behind
// `#`, which browsers send to no server, and is taken out of the address at once. Other tokens are not taken from there:
// a page of somebody else could lead here with a token of its own, and sign a person in as somebody else.
"use strict";

(() => {
  const form = document.getElementById("with-token");
  const field = document.getElementById("token");
  const problem = document.getElementById("problem");

  async function exchange(token) {
    problem.textContent = "";
    let answer;
    try {
      answer = await fetch("/sign-in/session", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ token }),
      });
    } catch {
      problem.textContent = "The server does not answer.";
      return;
    }
    if (answer.ok) {
      location.replace(form.dataset.to);
      return;
    }
    const told = await answer.json().catch(() => ({}));
    problem.textContent = [told.detail || "This did not work.", told.hint].filter(Boolean).join(" ");
    field.value = "";
    field.focus();
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    exchange(field.value.trim());
  });

  function takeLink() {
    const token = location.hash.slice(1);
    if (token.startsWith("haftlink_")) {
      history.replaceState(null, "", location.pathname + location.search);
      exchange(token);
    }
  }
  addEventListener("hashchange", takeLink);
  takeLink();
})();
