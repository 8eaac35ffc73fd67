/** The terminal of an interactive session: its modes while a scope is open, its size, and what a person types and pastes. */
import { StdinBuffer, parseKey } from "@earendil-works/pi-tui"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import { StringDecoder } from "node:string_decoder"

/** Something that comes from the terminal. */
export type Input =
  | { readonly _tag: "Key"; readonly id: string; readonly data: string }
  | { readonly _tag: "Paste"; readonly text: string }
  | { readonly _tag: "Resized" }

export interface Terminal {
  readonly size: () => { readonly columns: number; readonly rows: number }
  readonly write: (text: string) => void
  /** Leaves the modes of the session for as long as an effect runs, such as an editor. */
  readonly suspended: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** Stops the processes of the session, as Ctrl-Z does, until `fg`. */
  readonly stop: Effect.Effect<void>
}

// Bracketed paste on; keys of Kitty's protocol, unambiguous, and two queries: whether the terminal has them, and for its kind, which each terminal answers.
const enter = "\u001b[?2004h\u001b[>1u\u001b[?u\u001b[c"
const otherKeys = "\u001b[>4;2m"
const leave = "\u001b[?2026l\u001b[?1004l\u001b[?2004l\u001b[<u\u001b[>4;0m\u001b[0m\u001b[?25h"

/** An answer of the terminal to a query, or a report of its focus. It is no key. */
// oxlint-disable-next-line no-control-regex -- Escape sequences.
const report = /^\u001b(?:\[\?[\d;]*[a-zA-Z]|\[[IO]$|\[\d+;\d+R|\][^]*|P[^]*|_[^]*)/

/**
 * Takes the terminal until the scope closes: raw mode, bracketed paste, and the keys of Kitty's protocol where the terminal has it. However
 * the process ends, but for SIGKILL, the terminal is as before.
 */
export const open = Effect.fnUntraced(function* (
  inputs: Queue.Enqueue<Input>
): Effect.fn.Return<Terminal, never, Scope.Scope> {
  const { stdin, stdout } = process
  const offer = (input: Input) => void Queue.offerUnsafe(inputs, input)
  const buffer = new StdinBuffer({ escapeTimeout: process.env["SSH_TTY"] === undefined ? 25 : 100 })
  const decoder = new StringDecoder("utf8")
  buffer.on("data", (data) => {
    // A terminal that has Kitty's keys answers that before its kind.
    // oxlint-disable-next-line no-control-regex -- Escape sequences.
    if (/^\u001b\[\?[\d;]*c$/.test(data) && !hasKitty) stdout.write(otherKeys)
    // oxlint-disable-next-line no-control-regex -- Escape sequences.
    if (/^\u001b\[\?\d+u$/.test(data)) hasKitty = true
    if (!report.test(data)) offer({ _tag: "Key", id: parseKey(data) ?? "", data })
  })
  buffer.on("paste", (text) => offer({ _tag: "Paste", text }))
  let hasKitty = false
  let isOpen = false
  const onData = (bytes: Buffer) => {
    const text = decoder.write(bytes)
    // Without bracketed paste, lines that come at once are pasted: a person types one key at a time.
    if (/[\r\n][^]/.test(text) && !text.includes("\u001b")) offer({ _tag: "Paste", text })
    else buffer.process(text)
  }
  const onResize = () => offer({ _tag: "Resized" })
  const begin = () => {
    if (isOpen) return
    isOpen = true
    stdin.setRawMode(true)
    stdin.on("data", onData).resume()
    stdout.on("resize", onResize)
    stdout.write(enter)
  }
  const end = () => {
    if (!isOpen) return
    isOpen = false
    stdout.off("resize", onResize)
    stdin.off("data", onData).pause()
    stdout.write(leave)
    stdin.setRawMode(false)
  }
  process.on("exit", end)
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      end()
      buffer.destroy()
      process.off("exit", end)
    })
  )
  begin()
  const suspended = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.acquireUseRelease(
      Effect.sync(end),
      () => effect,
      () => Effect.sync(begin)
    )
  const stopped = Effect.callback<void>((resume) => {
    process.once("SIGCONT", () => resume(Effect.void))
    process.kill(0, "SIGTSTP")
  })
  return {
    size: () => ({ columns: stdout.columns || 80, rows: stdout.rows || 24 }),
    write: (text) => void stdout.write(text),
    suspended,
    stop: suspended(stopped)
  }
})
