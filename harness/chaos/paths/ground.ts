/**
 * A root with links of every kind in it, something outside that must stay there, and what tells that it did not.
 */
import { Effect } from "effect"
import { lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs"
import { join } from "node:path"
import * as Workspace from "../../../test/tools/workspace.ts"

/** A name that is outside only. */
const marker = "only-outside"

/** What `secret.txt` holds inside. */
export const inside = "inside"

const files = {
  "a/b/c.txt": inside,
  "a/outside/secret.txt": inside,
  "d/secret.txt": inside,
  "d/e/x.txt": inside
}

/** Makes the root and what is around it. */
export const make = Effect.gen(function* () {
  const space = yield* Workspace.make(files)
  const { fs, outside, path, root } = space
  yield* fs.writeFileString(path.join(outside, marker), "")
  yield* fs.writeFileString(path.join(root, "..", marker), "")
  const link = (target: string, name: string) => fs.symlink(target, path.join(root, name))
  yield* link("../..", "a/up")
  yield* link(outside, "a/out")
  yield* link(outside, "out")
  yield* link(path.join(outside, "secret.txt"), "file")
  yield* link("../outside/secret.txt", "relative")
  yield* link("out", "chain")
  yield* link(path.join(outside, "new.txt"), "dangling")
  yield* link("loop", "loop")
  yield* link("/proc/self/root", "proc")
  yield* link("/", "slash")
  yield* link("a", "inside")
  yield* fs.link(path.join(outside, "secret.txt"), path.join(root, "hard.txt"))
  const before = picture(space)
  return { ...space, escaped: escapes(space, before) }
})

export type Ground = Effect.Success<typeof make>

/** What is outside, with all that can be told of it. */
const picture = ({ outside, root }: Workspace.Workspace): string => {
  const around = join(root, "..")
  return JSON.stringify([
    readdirSync(around).toSorted(),
    readdirSync(outside)
      .toSorted()
      .map((name) => {
        const file = join(outside, name)
        const stat = lstatSync(file)
        return [name, stat.mode, stat.isSymbolicLink() ? readlinkSync(file) : readFileSync(file, "utf8")]
      })
  ])
}

/** What a call let out, or in. */
const escapes =
  (space: Workspace.Workspace, before: string) =>
  (text: string): string | undefined => {
    if (text.includes(Workspace.secret)) return "the secret came out"
    if (text.includes(marker)) return "names of the outside came out"
    return picture(space) === before ? undefined : "the outside was changed"
  }

/** The six tools that take a path, each with what else it needs. */
export const calls = (path: string): ReadonlyArray<readonly [tool: string, params: object]> => [
  ["read", { path }],
  ["list", { path }],
  ["find", { path, pattern: "**" }],
  ["grep", { path, pattern: "." }],
  // With a word in the pattern, ripgrep names the files.
  ["grep", { path, pattern: "side" }],
  ["edit", { path, oldText: inside, newText: `${inside} and edited` }],
  ["write", { path, content: "overwritten" }]
]
