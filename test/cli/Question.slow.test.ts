import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { existsSync } from "node:fs"
import { join } from "node:path"
import * as Program from "./program.ts"
import * as Terminal from "./terminal.ts"

Program.bundled()

type Call = readonly [name: string, params: object]

const isOne = (call: Call | ReadonlyArray<Call>): call is Call => typeof call[0] === "string"

/** A model that calls tools, one or several an answer, the first of them when `when` is done, and then says "done". */
const model = (
  calls: ReadonlyArray<Call | ReadonlyArray<Call>>,
  when: (() => Promise<void>) | undefined = undefined,
  bodies: Array<string> = []
) =>
  Effect.map(
    Program.server(async (_, body, response) => {
      bodies.push(body)
      const turn = JSON.parse(body).messages.filter(
        ({ role }: { role: string }) => role === "assistant"
      ).length
      if (turn === 0) await when?.()
      const call = calls[turn]
      if (call === undefined) Program.says(response, ["done"])
      else if (isOne(call)) Program.calls(response, call[0], call[1])
      else Program.callsAll(response, call)
    }),
    (url) => ({
      EFFECT_AGENT_MODEL: "openai-chat/gpt-4.1",
      OPENAI_API_KEY: "sk-test",
      OPENAI_BASE_URL: `${url}/v1`,
      NO_COLOR: "1"
    })
  )

/** Makes the file `ran`, or another one. */
const touch = (name = "ran") => ["shell", { command: `touch ${name}` }] as const

const gate = () => {
  let open = () => {}
  const isOpen = new Promise<void>((resolve) => {
    open = resolve
  })
  return { open, isOpen }
}

describe.skipIf(!Terminal.isThere).concurrent("a question on a terminal", { timeout: 90_000 }, () => {
  it.effect.each([
    ["a line", "y\r", /y\r?\n/, "n\r"],
    ["the start of a line", "y", /y$/, "\r"],
    ["many lines", "y\ry\ra\r", /a\r?\n/, "n\r"]
  ] as const)("is not answered by %s typed before it", ([, early, echo, answer]) =>
    Effect.gen(function* () {
      const cwd = Program.folder({})
      const { isOpen, open } = gate()
      const env = yield* model([touch()], () => isOpen)
      const { seen } = yield* Terminal.run(
        ["go"],
        async ({ sees, type }) => {
          await sees(/Model: .*\r\n/)
          type(early)
          // The terminal has it when it shows it.
          await sees(echo)
          open()
          await sees(/Allow this\?/)
          type(answer)
        },
        { cwd, env }
      )
      assert.match(seen, /Allow this\?/)
      assert.match(seen, /rejected: the user answered no/)
      assert.isFalse(existsSync(join(cwd, "ran")))
    })
  )

  it.effect("has what was typed during the run dropped, which the shell would take for commands", () =>
    Effect.gen(function* () {
      const { isOpen, open } = gate()
      const env = yield* model([], () => isOpen)
      const { code, seen } = yield* Terminal.run(
        ["go"],
        async ({ sees, type }) => {
          await sees(/Model: .*\r\n/)
          type("wait, stop\r")
          await sees(/wait, stop/)
          open()
        },
        { env }
      )
      assert.strictEqual(code, 0)
      assert.match(seen, /done[^]*What you typed during the run was dropped\./)
    })
  )

  it.effect("is not answered by what was typed behind the answer to the one before it", () =>
    Effect.gen(function* () {
      const cwd = Program.folder({})
      const env = yield* model([touch("first"), touch("second")])
      const { seen } = yield* Terminal.run(
        ["go"],
        async ({ sees, type }) => {
          await sees(/Allow this\?/)
          type("y\ry\ra\ry")
          await sees(/Allow this\?[^]*Allow this\?/)
          type("\r")
        },
        { cwd, env }
      )
      assert.match(seen, /rejected: the user answered no/)
      assert.isTrue(existsSync(join(cwd, "first")))
      assert.isFalse(existsSync(join(cwd, "second")))
    })
  )

  it.effect("ends by Ctrl-C also while the input from before is dropped", () =>
    Effect.gen(function* () {
      const cwd = Program.folder({})
      const env = yield* model([touch()])
      const { code } = yield* Terminal.run(
        ["go"],
        async ({ sees, type }) => {
          await sees(/ {2}touch ran/)
          type("\u0003")
        },
        { cwd, env }
      )
      assert.strictEqual(code, 130)
      assert.isFalse(existsSync(join(cwd, "ran")))
    })
  )

  it.effect("names the call, which no other line names", () =>
    Effect.gen(function* () {
      const env = yield* model([touch()])
      const { seen } = yield* Terminal.run(
        ["go"],
        ({ sees, type }) => sees(/Allow/).then(() => type("n\r")),
        {
          env
        }
      )
      assert.match(seen, /\nshell\r?\n {2}touch ran\r?\nAllow this\?/)
      assert.strictEqual(seen.split("touch ran").length, 2)
    })
  )

  it.effect("shows all of a write that is viewed, then asks again", () =>
    Effect.gen(function* () {
      const cwd = Program.folder({})
      const content = Array.from({ length: 60 }, (_, index) => `line ${index}\n`).join("")
      const env = yield* model([["write", { path: "new.txt", content }]])
      const { seen } = yield* Terminal.run(
        ["go"],
        async ({ sees, type }) => {
          await sees(/Allow this\?/)
          type("v\r")
          // A new terminal does not know its size: 24 lines.
          await sees(/37 more lines\./)
          type("\r")
          await sees(/14 more lines\./)
          type("\r")
          await sees(/line 59[^]*Allow this\?/)
          type("y\r")
        },
        { cwd, env }
      )
      assert.match(seen, /… 36 more lines hidden, v shows all/)
      assert.isTrue(existsSync(join(cwd, "new.txt")))
    })
  )

  it.effect("is not asked with -p: the call is refused", () =>
    Effect.gen(function* () {
      const cwd = Program.folder({})
      const env = yield* model([touch()])
      const { code, seen } = yield* Terminal.run(["-p", "go"], () => Promise.resolve(), { cwd, env })
      assert.strictEqual(code, 0)
      assert.notMatch(seen, /Allow this/)
      assert.match(seen, /rejected: it needs approval/)
      assert.match(seen, /1 call was refused\. To let it run give --allow 'shell\(touch ran\)'/)
      const failing = ["-p", "--fail-on-refusal", "go"]
      assert.strictEqual((yield* Terminal.run(failing, () => Promise.resolve(), { cwd, env })).code, 5)
      assert.isFalse(existsSync(join(cwd, "ran")))
    })
  )

  it.effect("comes after the answer to another one that is open", () =>
    Effect.gen(function* () {
      const cwd = Program.folder({})
      const env = yield* model([[touch("first"), touch("second")]])
      const { code, seen } = yield* Terminal.run(
        ["go"],
        async ({ sees, type }) => {
          await sees(/touch first\r?\nAllow this\?/)
          type("n\r")
          await sees(/touch second\r?\nAllow this\?/)
          type("y\r")
        },
        { cwd, env }
      )
      assert.strictEqual(code, 0)
      assert.strictEqual(seen.split("Allow this?").length, 3)
      assert.deepStrictEqual(
        ["first", "second"].map((name) => existsSync(join(cwd, name))),
        [false, true]
      )
    })
  )

  it.effect("of the model itself is answered in the terms of its schema", () =>
    Effect.gen(function* () {
      const bodies: Array<string> = []
      const asks = (question: string, schema?: object) =>
        ["ask_user", { question, ...(schema === undefined ? {} : { schema }) }] as const
      const env = yield* model(
        [
          asks("Which colour?"),
          asks("How many?", { type: "integer" }),
          asks("Sure?", { enum: ["yes", "no"] })
        ],
        undefined,
        bodies
      )
      const { code } = yield* Terminal.run(
        ["go"],
        async ({ sees, type }) => {
          await sees(/The model asks\r?\n {2}Which colour\?\r?\nAnswer: /)
          type("dark red\r")
          await sees(/How many\?\r?\nAnswer: /)
          type("a few\r")
          await sees(/Answer: [^]*How many[^]*Answer: [^]*Answer: /)
          type("3\r")
          await sees(/Sure\?\r?\n {2}One of: yes, no\r?\nAnswer: /)
          type("no\r")
        },
        { env }
      )
      assert.strictEqual(code, 0)
      const results = JSON.parse(bodies.at(-1) ?? "").messages.filter(
        ({ role }: { readonly role: string }) => role === "tool"
      )
      assert.deepStrictEqual(
        results.map(({ content }: { readonly content: string }) => content),
        ["dark red", "3", "no"]
      )
    })
  )
})
