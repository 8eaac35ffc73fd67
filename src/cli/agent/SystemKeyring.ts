/**
 * The keyring of the system, by the program `secret-tool` (Linux) or `security` (macOS), where it is there and works. Secrets go over stdin: other
 * users see the arguments of a program.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { spawn } from "node:child_process"

const service = "effect-agent"

/** A keyring that is locked waits for its user. */
const patience = "10 seconds"

/** Runs a program to its end, with a text on stdin. Succeeds with what it writes, and with none if it is missing, fails or takes too long. */
const ran = (
  program: string,
  args: ReadonlyArray<string>,
  input = ""
): Effect.Effect<Option.Option<string>> =>
  Effect.callback<Option.Option<string>>((resume) => {
    const child = spawn(program, args, { stdio: ["pipe", "pipe", "ignore"] })
    let output = ""
    child.stdout.setEncoding("utf8").on("data", (text: string) => (output += text))
    child.once("error", () => resume(Effect.succeedNone))
    child.once("close", (code) => resume(Effect.succeed(code === 0 ? Option.some(output) : Option.none())))
    // It may end without reading.
    child.stdin.on("error", () => {})
    child.stdin.end(input)
    return Effect.sync(() => child.kill())
  }).pipe(Effect.timeoutOption(patience), Effect.map(Option.flatten))

interface Tool {
  readonly find: (key: string) => Effect.Effect<Option.Option<string>>
  readonly set: (key: string, secret: string) => Effect.Effect<Option.Option<string>>
  readonly remove: (key: string) => Effect.Effect<Option.Option<string>>
}

const secretTool: Tool = {
  find: (key) => ran("secret-tool", ["lookup", "service", service, "server", key]),
  set: (key, secret) =>
    ran("secret-tool", ["store", `--label=${service} ${key}`, "service", service, "server", key], secret),
  remove: (key) => ran("secret-tool", ["clear", "service", service, "server", key])
}

/** Names and secrets are written as base64, which needs no quotes. */
const security: Tool = {
  find: (key) =>
    ran("security", ["find-generic-password", "-s", service, "-a", encoded(key), "-w"]).pipe(
      Effect.map(Option.map((text) => Buffer.from(text.trim(), "base64").toString()))
    ),
  set: (key, secret) =>
    ran(
      "security",
      ["-i"],
      `add-generic-password -U -s ${service} -a ${encoded(key)} -w ${encoded(secret)}\n`
    ),
  remove: (key) => ran("security", ["delete-generic-password", "-s", service, "-a", encoded(key)])
}

const encoded = (text: string): string => Buffer.from(text).toString("base64")

const tool = process.platform === "darwin" ? security : secretTool

/** The secret of a key. */
export const find = (key: string): Effect.Effect<Option.Option<string>> =>
  Effect.map(
    tool.find(key),
    Option.filter((secret) => secret !== "")
  )

/** Keeps a secret. Returns whether the keyring gives it back: it may cut a long one. */
export const set = (key: string, secret: string): Effect.Effect<boolean> =>
  Effect.flatMap(tool.set(key, secret), (done) =>
    Option.isNone(done) ? Effect.succeed(false) : Effect.map(find(key), Option.contains(secret))
  )

/** Forgets a secret. */
export const remove = (key: string): Effect.Effect<void> => Effect.asVoid(tool.remove(key))
