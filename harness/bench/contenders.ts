/**
 * Who is measured: raw clients first, then ours, then peers when they are asked for. Peers are installed in a folder of
 * their own, in the versions of `peers.json`; no `package.json` of ours knows them.
 */
import { spawnSync } from "node:child_process"
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"

export interface Contender {
  readonly name: string
  /** Its adapter. */
  readonly path: string
  /** The server of PostgreSQL that it uses. */
  readonly server?: string
}

const here = import.meta.dirname
/** Under `node_modules`. */
export const peersFolder = ".bench-peers/node_modules"
const folder = join(here, "../../node_modules/.bench-peers")
/** What of theirs is worth naming. */
export const packages = ["@earendil-works/pi-agent-core", "ai", "@openai/agents"]

const adapter = (name: string) => join(here, "adapters", name)

export const ours: ReadonlyArray<Contender> = [
  { name: "raw fetch", path: adapter("raw-fetch.mjs") },
  { name: "raw undici", path: adapter("raw-undici.mjs") },
  { name: "effect-agent", path: join(here, "adapter.mjs") },
  { name: "effect-agent, subscribed", path: adapter("subscribed.mjs") },
  { name: "effect-agent, promise", path: adapter("promise.mjs") }
]

const names: Readonly<Record<string, string>> = {
  pi: "pi.mjs",
  "AI SDK": "ai-sdk.mjs",
  "OpenAI Agents": "openai-agents.mjs"
}

/** Installs what is not there yet. An adapter is copied beside its packages, so that it finds them. */
export const peers = (): ReadonlyArray<Contender> => {
  const manifest = readFileSync(join(here, "peers.json"), "utf8")
  const installed = join(folder, "package.json")
  mkdirSync(folder, { recursive: true })
  if (!existsSync(installed) || readFileSync(installed, "utf8") !== manifest) {
    writeFileSync(installed, manifest)
    const args = ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock"]
    const { status } = spawnSync("npm", args, { cwd: folder, stdio: "inherit" })
    if (status !== 0) {
      writeFileSync(installed, "")
      throw new Error("the peers could not be installed")
    }
  }
  for (const file of ["once.mjs", ...Object.values(names)]) copyFileSync(adapter(file), join(folder, file))
  return Object.entries(names).map(([name, file]) => ({ name, path: join(folder, file) }))
}

/** A system that keeps its runs, and the packages that it needs for each database. */
interface Keeper {
  readonly name: string
  readonly main: string
  readonly sqlite?: string
  readonly postgres: string
}

const keepers: Readonly<Record<string, Keeper>> = {
  langgraph: {
    name: "LangGraph",
    main: "@langchain/langgraph",
    sqlite: "@langchain/langgraph-checkpoint-sqlite",
    postgres: "@langchain/langgraph-checkpoint-postgres"
  },
  dbos: { name: "DBOS", main: "@dbos-inc/dbos-sdk", postgres: "@dbos-inc/dbos-sdk" }
}

const onDatabases = (
  name: string,
  path: string,
  has: (database: "sqlite" | "postgres") => boolean
): ReadonlyArray<Contender> => {
  const server = process.env["PGURL"]
  return [
    ...(has("sqlite") ? [{ name: `${name}, SQLite`, path }] : []),
    ...(server !== undefined && has("postgres") ? [{ name: `${name}, PostgreSQL`, path, server }] : [])
  ]
}

/** Who keeps runs: ours on SQLite, and on PostgreSQL if `PGURL` is a server, and the peers that the folder `PEERS` has, each in a folder of its own. */
export const durable = (): ReadonlyArray<Contender> => {
  const own = onDatabases("effect-agent", join(here, "durable/ours.ts"), () => true)
  const { PEERS: given } = process.env
  if (given === undefined) return own
  const others = Object.entries(keepers).flatMap(([folder, keeper]) => {
    const place = resolve(given, folder)
    const has = (name: string | undefined) =>
      name !== undefined && existsSync(join(place, "node_modules", name, "package.json"))
    if (!has(keeper.main)) return []
    for (const file of readdirSync(join(here, "durable/peers")))
      copyFileSync(join(here, "durable/peers", file), join(place, file))
    copyFileSync(adapter("raw-fetch.mjs"), join(place, "raw-fetch.mjs"))
    const { version } = JSON.parse(
      readFileSync(join(place, "node_modules", keeper.main, "package.json"), "utf8")
    )
    return onDatabases(`${keeper.name} ${version}`, join(place, `${folder}.mjs`), (database) =>
      has(keeper[database])
    )
  })
  return [...own, ...others]
}
