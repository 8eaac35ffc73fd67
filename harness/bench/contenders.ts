/**
 * Who is measured: raw clients first, then ours, then peers when they are asked for. Peers are installed in a folder of
 * their own, in the versions of `peers.json`; no `package.json` of ours knows them.
 */
import { spawnSync } from "node:child_process"
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"

export interface Contender {
  readonly name: string
  /** Its adapter. */
  readonly path: string
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
