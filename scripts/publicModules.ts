/**
 * The public modules of the package, as paths from `src` without `.ts`: `index` and its namespaces, and for each edge its `index` and the
 * namespaces of that.
 */
import { globSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"

const src = join(import.meta.dirname, "../src")

/** Public modules that no barrel loads: what they import takes long, or is an optional peer that the others do without. */
const alone = ["node/NodeCluster", "node/NodeSqlite"]

const namespaces = /^export \* as \w+ from "(\.[\w./-]+)\.ts"$/gm

const namespacesOf = (barrel: string): ReadonlyArray<string> =>
  [...readFileSync(join(src, `${barrel}.ts`), "utf8").matchAll(namespaces)].map(([, file = ""]) =>
    join(dirname(barrel), file)
  )

/** The barrels of the edges, as `runs/index`. */
const edges = globSync("*/index.ts", { cwd: src }).map((file) => file.slice(0, -".ts".length))

export const publicModules: ReadonlyArray<string> = [
  ...new Set([...["index", ...edges].flatMap((barrel) => [barrel, ...namespacesOf(barrel)]), ...alone])
].toSorted()

/** The subpath of a module: `effect-agent/runs` for `runs/index`. */
export const subpathOf = (module: string): string => `./${module}`.replace(/\/index$/, "")
