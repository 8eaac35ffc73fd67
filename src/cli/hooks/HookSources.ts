/** The files with hooks of a run: those of the project, which the user must trust, and those of the user. */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"
import * as Result from "effect/Result"
import { homedir } from "node:os"
import * as Folders from "../../skills/Folders.ts"
import { UsageError } from "../ExitCode.ts"
import type { File } from "../settings/Setting.ts"
import type { Configuration, Settings } from "../settings/Settings.ts"
import { say } from "../terminal/Screen.ts"
import * as CommandHooks from "./CommandHooks.ts"
import * as HookFile from "./HookFile.ts"
import * as HookTrust from "./HookTrust.ts"

/** The settings that name the files. */
export type Places = Pick<Settings, "configuration" | "cwd" | "hooksFrom">

/** A file with hooks. */
interface Source extends HookTrust.Content {
  readonly isProject: boolean
  /** The program whose format the file has. */
  readonly kind: "own" | "claude" | "karl"
}

/** The hooks of all files, for the agents of a session. */
export interface Hooks {
  /** The commands of all files, also those that do not run. */
  readonly commands: ReadonlyArray<HookFile.Listed>
  readonly make: (given: CommandHooks.Given) => ReturnType<typeof CommandHooks.make>
}

/** Reads all files, and names what does not run of them. */
export const load = Effect.fnUntraced(function* (places: Places) {
  const found = yield* read(places)
  const { remarks, untrusted } = found
  const count = untrusted === 1 ? "1 hook of this project does" : `${untrusted} hooks of this project do`
  yield* say([...remarks, ...(untrusted === 0 ? [] : [`${count} not run: effect-agent config --trust`])])
  const hooks: Hooks = { commands: found.commands, make: (given) => CommandHooks.make(found, given) }
  return hooks
})

/** Reads all files. Fails with `UsageError` for one that is not there or not valid. */
const read = Effect.fnUntraced(function* (places: Places) {
  const isTrusted = yield* HookTrust.testOf(places.configuration.paths)
  const commands: Array<HookFile.Listed> = []
  const modules: Array<string> = []
  const remarks: Array<string> = []
  let untrusted = 0
  for (const source of yield* all(places)) {
    const runs = !source.isProject || isTrusted(source)
    if (source.kind === "karl") {
      if (runs) modules.push(source.path)
      else untrusted++
      continue
    }
    const read = yield* Effect.fromResult(hooksIn(source))
    commands.push(...read.hooks.map((hook) => ({ ...hook, isTrusted: runs })))
    remarks.push(...read.remarks)
    if (!runs) untrusted += read.hooks.length
  }
  return { commands, modules, untrusted, remarks } satisfies HookFile.Found
})

/** Writes down whether the user trusts the files of the project as they are now. Succeeds with their number. */
export const trust = Effect.fnUntraced(function* (places: Places, isTrusted: boolean) {
  const own = (yield* all(places)).filter(({ isProject }) => isProject)
  yield* HookTrust.set(places.configuration.paths, isTrusted ? own : [])
  return own.length
})

const hooksIn = ({ kind, path, text }: Source): Result.Result<HookFile.Read, UsageError> =>
  Result.gen(function* () {
    const json: unknown = yield* Result.try({
      try: () => JSON.parse(text),
      catch: (thrown) =>
        new UsageError({
          detail: `${path}: not JSON: ${thrown instanceof Error ? thrown.message : String(thrown)}`
        })
    })
    const member: unknown = typeof json === "object" && json !== null && "hooks" in json ? json.hooks : {}
    return yield* HookFile.read(path, member, kind === "claude")
  })

const all = Effect.fnUntraced(function* ({ configuration, cwd, hooksFrom }: Places) {
  const { paths, project, user } = configuration
  const path = yield* Path.Path
  const home = homedir()
  const ownOf = Effect.fnUntraced(function* (file: File | undefined, isProject: boolean) {
    if (file?.hasHooks !== true) return []
    return [
      { ...(yield* fileAt(file.path, isProject ? paths.within : undefined)), isProject, kind: "own" as const }
    ]
  })
  /** A file that the user names by a relative path is one of the project that the run is in. */
  const othersOf = (names: ReadonlyArray<string>, isProject: boolean, base: string) =>
    Effect.forEach(
      names,
      Effect.fnUntraced(function* (name) {
        const isLoose = !path.isAbsolute(name) && !name.startsWith("~/")
        const file = name.startsWith("~/") ? path.join(home, name.slice(2)) : path.resolve(base, name)
        const content = yield* fileAt(file, isProject ? paths.within : undefined)
        return {
          ...content,
          isProject: isProject || (isLoose && base === paths.folder),
          kind: "claude" as const
        }
      })
    )
  const sources: ReadonlyArray<Source> = [
    ...(yield* ownOf(project, true)),
    ...(yield* othersOf(project?.hooksFrom ?? [], true, paths.folder)),
    ...(yield* modulesIn(paths.karl.project, configuration, true)),
    ...(yield* ownOf(user, false)),
    ...(yield* othersOf(user?.hooksFrom ?? [], false, paths.folder)),
    ...(yield* othersOf(hooksFrom, false, `${path.resolve(cwd)}${path.sep}.`)),
    ...(yield* modulesIn(paths.karl.user, configuration, false))
  ]
  return sources.filter((source, index) => sources.findIndex(({ path }) => path === source.path) === index)
})

/** Maximum bytes of a file. */
const maxBytes = 1_048_576

const fileAt = Effect.fnUntraced(function* (path: string, within: string | undefined) {
  const refused = (why: string) => new UsageError({ detail: `${path}: the hooks cannot be read: ${why}` })
  const read = yield* Effect.mapError(Folders.read(path, within, maxBytes), ({ message }) => refused(message))
  if (read === undefined)
    return yield* refused(`it is no file${within === undefined ? "" : ` within ${within}`}.`)
  if (read.isCut) return yield* refused(`it has ${read.bytes} bytes, and at most ${maxBytes} are read.`)
  return { path, text: read.text }
})

const extensions: ReadonlySet<string> = new Set([".js", ".ts", ".mjs", ".cjs"])

/** The modules in a folder of Karl, by name. */
const modulesIn = Effect.fnUntraced(function* (folder: string, { paths }: Configuration, isProject: boolean) {
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const names = yield* Effect.orElseSucceed(files.readDirectory(folder), (): Array<string> => [])
  return yield* Effect.forEach(
    names.filter((name) => extensions.has(path.extname(name))).toSorted(),
    (name) =>
      Effect.map(fileAt(path.join(folder, name), isProject ? paths.within : undefined), (content) => ({
        ...content,
        isProject,
        kind: "karl" as const
      }))
  )
})
