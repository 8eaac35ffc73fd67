/** The text of a prompt as the model gets it, and parts of requests that a person reads. */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import * as Schema from "effect/Schema"
import type * as Payload from "../../api/Payload.ts"
import type * as Message from "../../Message.ts"
import * as ModelOptions from "../../RunOptions.ts"
import type { EventError } from "../../Run.ts"
import * as AgentSetup from "../agent/AgentSetup.ts"
import { UsageError } from "../ExitCode.ts"
import type { Settings } from "../settings/Settings.ts"

/**
 * Reads a prompt with the files that it names as `@path`, and the output of commands that the person ran. Fails with `UsageError` for a
 * path that does not exist.
 */
export const read = Effect.fnUntraced(function* (
  text: string,
  outputs: ReadonlyArray<string>,
  settings: Settings
): Effect.fn.Return<Message.Input, UsageError, FileSystem.FileSystem | Path.Path> {
  const whole =
    outputs.length === 0 ? text : `${text}\n\n<terminal>\n${outputs.join("\n").trimEnd()}\n</terminal>`
  if (!/(?:^|\s)@\S/.test(text)) return whole
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  for (const [, quoted, bare = ""] of text.matchAll(/(?:^|\s)@(?:"([^"]+)"|([^\s"]+))/g)) {
    const name = quoted ?? bare
    const isThere = (each: string) =>
      Effect.orElseSucceed(files.exists(path.resolve(settings.cwd, each)), () => false)
    if ((yield* isThere(name)) || (yield* isThere(name.replace(/[.,;:!?)\]}'"]+$/, "")))) continue
    return yield* new UsageError({ detail: `No such file: ${name}` })
  }
  const Attachments = yield* Effect.promise(() => import("../agent/Attachments.ts"))
  const attached = yield* Attachments.read(whole, { cwd: settings.cwd, file: [] })
  return attached.files.length === 0
    ? attached.text
    : [{ type: "text", text: attached.text }, ...attached.files]
})

/** The text of a message as events have it. */
export const textOf = (input: Message.Input): string => {
  if (typeof input === "string") return input
  const blocks = Array.isArray(input) ? input : [input]
  return blocks.flatMap((block) => ("type" in block && block.type === "text" ? [block.text] : [])).join("\n")
}

/** The options of a run at a server, which narrow its own. */
export const optionsOf = (settings: Settings): Payload.Options =>
  Object.fromEntries(
    Object.entries(AgentSetup.optionsOf(settings)).filter(([, value]) => Object.keys(value).length > 0)
  )

const decodeEffort = Schema.decodeUnknownOption(ModelOptions.ModelOptions.fields.thinkingLevel)

/** The option of an effort. */
export const effortOf = (effort: string) =>
  Option.match(decodeEffort(effort), {
    onNone: () => ({}),
    onSome: (thinkingLevel) => (thinkingLevel === undefined ? {} : { thinkingLevel })
  })

// ───────────────────────── Params of calls

const record = Schema.decodeUnknownOption(Schema.Record(Schema.String, Schema.Json))
const fromText = Schema.decodeUnknownEffect(Schema.fromJsonString(Schema.Json))

const memberOf = (params: unknown, name: string): string | undefined => {
  const value = Option.getOrUndefined(record(params))?.[name]
  return typeof value === "string" ? value : undefined
}

export const commandOf = (params: unknown): string | undefined => memberOf(params, "command")
export const pathOf = (params: unknown): string | undefined => memberOf(params, "path")

export const withCommand = (params: unknown, command: string): Schema.Json => ({
  ...Option.getOrUndefined(record(params)),
  command
})

/** Reads JSON that a person wrote. */
export const jsonOf = (text: string): Effect.Effect<Schema.Json, UsageError> =>
  Effect.mapError(fromText(text), () => new UsageError({ detail: "That is no JSON: nothing was approved." }))

// ───────────────────────── Failures

/** The host that could not be reached, if that is the failure. */
export const offlineHost = (error: EventError): string | undefined => {
  if (error._tag !== "ProviderError" || error.reason._tag !== "Transport") return undefined
  const { detail, kind } = error.reason
  if (kind !== "refused" && kind !== "dns" && kind !== "reset") return undefined
  return /\(([^()\s]+)\)$/.exec(detail)?.[1] ?? error.provider
}
