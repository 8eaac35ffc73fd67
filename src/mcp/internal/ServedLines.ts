/**
 * The messages on stdin. The transport of Effect loses those that come in one chunk with a line that is not JSON.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import * as Json from "../../internal/json.ts"

/** Leaves out lines of stdin that are not JSON, or nest too deep, and logs that. */
export const layer: Layer.Layer<Stdio.Stdio, never, Stdio.Stdio> = Layer.effect(
  Stdio.Stdio,
  Effect.map(Stdio.Stdio, (stdio) => ({
    ...stdio,
    stdin: stdio.stdin.pipe(
      Stream.decodeText,
      Stream.splitLines,
      Stream.filter((line) => line.trim() !== ""),
      Stream.filterEffect((line) =>
        Json.parse(line) !== undefined
          ? Effect.succeed(true)
          : Effect.as(Effect.logWarning("A line of stdin is no JSON, or nests too deep"), false)
      ),
      Stream.map((line) => `${line}\n`),
      Stream.encodeText
    )
  }))
)
