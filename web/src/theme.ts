// Runs before the first paint, so that a chosen theme does not flash.
try {
  const chosen = JSON.parse(localStorage.getItem("keisei") ?? "{}").theme;
  if (chosen) document.documentElement.dataset.theme = chosen;
} catch {
  // Storage is off: the system's theme holds.
}
