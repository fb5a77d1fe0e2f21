// Builds the page into keisei/web/static: `make web`. The same sources give the same bytes.
import { build } from "esbuild";
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const target = process.argv[2] ?? join(here, "..", "keisei", "web", "static");
mkdirSync(target, { recursive: true });

await build({
  absWorkingDir: here,
  entryPoints: { app: "src/main.tsx", theme: "src/theme.ts" },
  outdir: target,
  bundle: true,
  minify: true,
  charset: "utf8",
  format: "iife",
  target: ["es2022"],
  jsx: "automatic",
  jsxImportSource: "preact",
  external: ["*.webp"],
  legalComments: "none", // the licences are in licenses.txt, whole
  logLevel: "warning",
});

for (const name of ["index.html", "icon.svg", "wood.webp"]) {
  copyFileSync(join(here, "public", name), join(target, name));
}
writeFileSync(join(target, "licenses.txt"), licenses());

/** What is in the bundle, and under which licence. */
function licenses() {
  const lock = JSON.parse(readFileSync(join(here, "package-lock.json"), "utf8"));
  const parts = ["Keisei's page is under the MIT licence, as Keisei is. It contains:\n"];
  for (const name of ["preact", "uplot"]) {
    const text = readFileSync(join(here, "node_modules", name, "LICENSE"), "utf8");
    parts.push(`${name} ${lock.packages[`node_modules/${name}`].version}\n\n${text.trim()}\n`);
  }
  const font = readFileSync(join(here, "public", "OFL.txt"), "utf8");
  parts.push(`Outlines of signs from Noto Serif CJK JP Bold\n\n${font.trim()}\n`);
  return parts.join(`\n${"-".repeat(72)}\n\n`);
}
