// Starts the program from a checkout: bundled, as it is published, and bundled again when something it is made of has
// changed since. The first start makes the first bundle.
import { globSync, statSync } from "node:fs"
import { join } from "node:path"

const root = join(import.meta.dirname, "..")
const entry = join(root, "dist/cli/main.js")

const changedAt = (path) => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0
// Folders too: a file that went away changes its folder.
const madeOf = ["package-lock.json", "scripts/bundle.config.ts", "src", ...globSync("src/**", { cwd: root })]

if (madeOf.some((path) => changedAt(join(root, path)) > changedAt(entry))) {
  const [{ build }, { program }] = await Promise.all([import("esbuild"), import("./bundle.config.ts")])
  await build(program(join(root, "dist")))
}
await import(entry)
