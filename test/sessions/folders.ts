/** Stores in folders of their own. */
import { NodeServices } from "@effect/platform-node"
import { Effect, FileSystem } from "effect"
import { JsonlSessionStore, SessionStore } from "effect-agent/sessions"
import { globSync } from "node:fs"
import { join } from "node:path"

/** A folder that lasts as long as the scope. */
export const folder = Effect.flatMap(FileSystem.FileSystem, (files) => files.makeTempDirectoryScoped()).pipe(
  Effect.provide(NodeServices.layer)
)

/** A store in the files of a folder. */
export const storeIn = (directory: string, fsync: "never" | "always" = "never") =>
  Effect.map(JsonlSessionStore.storage({ directory, fsync }), (storage) => SessionStore.make(storage)).pipe(
    Effect.provide(NodeServices.layer)
  )

/** The file of the one session in a folder. */
export const fileIn = (directory: string): string => {
  const [file = ""] = globSync("*.jsonl", { cwd: directory })
  return join(directory, file)
}
