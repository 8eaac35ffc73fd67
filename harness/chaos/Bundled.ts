/**
 * A module of a chaos test as one file, for a process of its own: it starts in a fraction of the time of its modules, and their types need
 * not be stripped, which would take memory that a server does not have.
 */
import { Effect } from "effect"
import { build } from "esbuild"
import { mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { basename, join } from "node:path"

const repo = join(import.meta.dirname, "../..")

/** A folder inside the repository, so that a bundle there finds its packages. */
export const folder = (name: string) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const cache = join(repo, "node_modules/.cache")
      mkdirSync(cache, { recursive: true })
      return mkdtempSync(join(cache, `effect-agent-${name}-`))
    }),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
  )

/** Bundles a module into a folder, and succeeds with its file. */
export const make = (entry: string, home: string) =>
  Effect.promise(async () => {
    const outfile = join(home, `${basename(entry, ".ts")}.mjs`)
    await build({
      entryPoints: [join(import.meta.dirname, entry)],
      outfile,
      bundle: true,
      format: "esm",
      platform: "node",
      conditions: ["effect-agent-source"],
      external: ["effect-agent/none"],
      banner: {
        js: 'import { createRequire as requireOf } from "node:module"; const require = requireOf(import.meta.url);'
      },
      logLevel: "error"
    })
    return outfile
  })
