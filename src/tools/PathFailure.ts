/**
 * Errors of tools that take a path.
 *
 * Their messages are for the model.
 *
 * @since 0.1.0
 */
import type { PlatformError } from "effect/PlatformError"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { cutLine, visible } from "./Output.ts"
import { TaggedError } from "../internal/errors.ts"

/**
 * The tool may not use the path.
 *
 * `detail` says why, and which paths it may use.
 *
 * **Example** (Handling a refused path)
 *
 * ```ts
 * import { NodeServices } from "@effect/platform-node"
 * import { Effect } from "effect"
 * import { Root } from "effect-agent/tools"
 *
 * const program = Root.resolve({ root: "." }, "read", "~/.ssh/id_rsa").pipe(
 *   Effect.map(({ shown }) => shown),
 *   Effect.catchTag("PathRefused", ({ detail }) => Effect.succeed(detail))
 * )
 * console.log(await Effect.runPromise(program.pipe(Effect.provide(NodeServices.layer))))
 * ```
 *
 * @since 0.1.0
 * @category errors
 */
export class PathRefused extends TaggedError<PathRefused>()("PathRefused", {
  /** The path that the model gave. */
  path: Schema.String,
  /** The reason, and the paths that the tool may use. */
  detail: Schema.String
}) {
  override get message(): string {
    return `${quoted(this.path)} is refused: ${this.detail}.`
  }
}

/**
 * The tool may use the path, but the system or the content of the file prevents it.
 *
 * **Details**
 *
 * `reason` is for code: `notFound`, `denied` (the system refuses access), `isFolder`, `notFolder`, `tooLarge`,
 * `changed` (another process changed the file during the call) or `other`. `detail` is for the model.
 *
 * **Example** (Reading the reason)
 *
 * ```ts
 * import { PathFailure } from "effect-agent/tools"
 *
 * const failure = new PathFailure.FileFailed({
 *   path: "a.txt",
 *   reason: "notFound",
 *   detail: "there is no such file or folder"
 * })
 * console.log(failure.reason, failure.message)
 * ```
 *
 * @since 0.1.0
 * @category errors
 */
export class FileFailed extends TaggedError<FileFailed>()("FileFailed", {
  /** The path that the model gave. */
  path: Schema.String,
  /** The reason for code. */
  reason: Schema.Literals(["notFound", "denied", "isFolder", "notFolder", "tooLarge", "changed", "other"]),
  /** The reason for the model. */
  detail: Schema.String
}) {
  override get message(): string {
    return `${quoted(this.path)}: ${this.detail}.`
  }
}

/**
 * Schema of the errors of a tool that takes a path.
 *
 * @since 0.1.0
 * @category schemas
 */
export const PathFailure = Schema.Union([PathRefused, FileFailed])

/**
 * The errors of a tool that takes a path.
 *
 * @since 0.1.0
 * @category errors
 */
export type PathFailure = typeof PathFailure.Type

/**
 * Converts a `PlatformError` to a `FileFailed` for the path that the model gave.
 *
 * **Details**
 *
 * The message leaves out paths of the system error, because they may be paths that the model must not see.
 *
 * **Example** (Reading a file in a tool of your own)
 *
 * ```ts
 * import { NodeServices } from "@effect/platform-node"
 * import { Effect, FileSystem } from "effect"
 * import { PathFailure } from "effect-agent/tools"
 *
 * const program = Effect.gen(function* () {
 *   const files = yield* FileSystem.FileSystem
 *   return yield* files.readFileString("/no/such/file")
 * }).pipe(Effect.mapError((error) => PathFailure.fromPlatform("file", error)))
 *
 * const failure = await Effect.runPromise(program.pipe(Effect.flip, Effect.provide(NodeServices.layer)))
 * console.log(failure.reason) // => notFound
 * ```
 *
 * @since 0.1.0
 * @category converting
 */
export const fromPlatform = (path: string, { reason }: PlatformError): FileFailed => {
  switch (reason._tag) {
    case "NotFound":
      return new FileFailed({ path, reason: "notFound", detail: "there is no such file or folder" })
    case "PermissionDenied":
      return new FileFailed({ path, reason: "denied", detail: "permission denied" })
    default:
      return new FileFailed({ path, reason: "other", detail: systemText(reason) })
  }
}

// Node: "ENOSPC: no space left on device, write '/path'".
const systemText = (reason: PlatformError["reason"]): string =>
  Predicate.hasProperty(reason, "cause") && reason.cause instanceof Error
    ? reason.cause.message.split(",", 1).join("")
    : (reason.description ?? reason._tag)

const quoted = (path: string): string => `"${visible(cutLine(path, 300))}"`
