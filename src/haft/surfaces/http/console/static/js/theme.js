// Dark or light, as the person chose in this browser. A plain script in the head: it runs before anything is drawn.
try {
  const chosen = localStorage.getItem("haft-theme");
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
} catch {
  // A private window keeps nothing.
}
