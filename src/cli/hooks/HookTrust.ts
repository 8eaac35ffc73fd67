/** The trust of the user in files of hooks of projects: their hashes, in a file that no other user may read. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import * as Schema from "effect/Schema"
import { createHash } from "node:crypto"
import * as PrivateFile from "../settings/PrivateFile.ts"
import type { ConfigurationPaths } from "../settings/Settings.ts"

/** The hashes of trusted files by their paths, by the folders of their projects. */
const trusted = PrivateFile.records(Schema.Record(Schema.String, Schema.String))

/** A file as it is now. */
export interface Content {
  readonly path: string
  readonly text: string
}

const hashOf = (text: string): string => createHash("sha256").update(text).digest("hex")

/** The file, beside the configuration of the user. */
const placeOf = ({ user }: ConfigurationPaths) =>
  Effect.map(Path.Path, (path) => path.join(path.dirname(user), "trusted-hooks.json"))

/** Makes the test whether the user trusts a file of a project as it is now. A file that cannot be read trusts nothing. */
export const testOf = Effect.fnUntraced(function* (paths: ConfigurationPaths) {
  const { folder } = paths
  const read = yield* Effect.option(trusted.read(yield* placeOf(paths)))
  const folders = new Map(Object.entries(Option.getOrElse(read, () => ({}))))
  const hashes = new Map(Object.entries(folders.get(folder) ?? {}))
  return ({ path, text }: Content): boolean => hashes.get(path) === hashOf(text)
})

/** Writes down that the user trusts these files of a project as they are now, and no others. */
export const set = Effect.fnUntraced(function* (paths: ConfigurationPaths, contents: ReadonlyArray<Content>) {
  const file = yield* placeOf(paths)
  const hashes = Object.fromEntries(contents.map(({ path, text }) => [path, hashOf(text)]))
  const put = trusted.put(file, paths.folder, contents.length === 0 ? undefined : hashes)
  yield* PrivateFile.locked(file, put)
})
