/**
 * Why a tool could not use a path: it is not allowed to, or it could not. The texts are for the model.
 */
import type { PlatformError } from "effect/PlatformError"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { cutLine, visible } from "./Output.ts"

/** The path is not one the tool may use. `detail` says why, and what is allowed. */
export class PathRefused extends Schema.TaggedError<PathRefused>()("PathRefused", {
  path: Schema.String,
  detail: Schema.String
}) {
  override get message(): string {
    return `${quoted(this.path)} is refused: ${this.detail}.`
  }
}

/** The path is allowed, and cannot be used. */
export class FileFailed extends Schema.TaggedError<FileFailed>()("FileFailed", {
  path: Schema.String,
  reason: Schema.Literals(["notFound", "denied", "isFolder", "notFolder", "tooLarge", "changed", "other"]),
  detail: Schema.String
}) {
  override get message(): string {
    return `${quoted(this.path)}: ${this.detail}.`
  }
}

/** Either of them, as a schema: what tools that take a path fail with. */
export const PathFailure = Schema.Union([PathRefused, FileFailed])
export type PathFailure = typeof PathFailure.Type

/** What the system said, without the paths it said it of: those are ours, not the caller's. */
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
